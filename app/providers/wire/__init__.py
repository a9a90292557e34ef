"""Wire protocols: a request as JSON, and a reader of the events that stream back."""
