"""Who holds each page of a deployment: asked of its front when somebody looks, and made into what pages and programs show."""
