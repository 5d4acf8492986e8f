"""What runs an engine elsewhere: files for Docker Compose, Kubernetes and Grafana."""
