"""Requests to one server: base URL, HTTP client with limits, SDK connection, error translation."""
