"""Parsing of exports, shared by the importers.

scanner       brackets and strings of JSON that may be invalid; `json_events` yields conversations
              and messages one at a time
values        JSON values with the type that is expected
formats       what tells a format, and its files as lines, JSON or a database
blocks        blocks of messages, replies in pieces, project names
building      conversations with a sound tree of messages
"""
