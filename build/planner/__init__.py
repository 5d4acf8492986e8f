"""Recipe + model + hardware → what fits, what is legal, what to expect. Pure: nothing is spent."""
