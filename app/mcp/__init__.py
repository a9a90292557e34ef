"""MCP: memory for other programs (Model Context Protocol, versions 2026-07-28 and 2025-11-25).

memory_tools   the tools, without the protocol
access         which programs may read, and the log of what they read
server         the protocol on a pair of streams and over HTTP
sdk            the first import of the SDK
clients        configurations of programs that start the relay
tool_servers   programs with tools for models, and permission to call them; `tool_connections` to
               them, through `line_limit`
relay          what `commonplace mcp` runs: bytes between its standard streams and the library's owner
"""
