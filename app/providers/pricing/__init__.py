"""Prices of requests, and estimates of how many tokens a text has."""
