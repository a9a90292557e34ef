"""Background work: what is missing, what failed, what is to be regenerated."""
