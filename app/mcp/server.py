"""The MCP server on a pair of text streams, for one program at a time; several run side by side."""

from typing import TYPE_CHECKING, Any, TextIO

from app.mcp.memory_tools import McpTools
from app.mcp.sdk import load_sdk

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

NAME, VERSION = "commonplace", "0.1.0"
INSTRUCTIONS = (
    "The user's memory: earlier conversations with language models, facts and saved texts. Search it "
    "before asking the user what was said or decided before. Quote with date and url."
)
_UNNAMED = "unnamed program"


def serve(reader: TextIO, writer: TextIO, tools: McpTools) -> None:
    """Answer a program until its stream ends. Blocking, on the caller's thread.

    Clients of 2026-07-28 are served without a session, older ones after `initialize`.
    """
    load_sdk()
    import anyio
    from mcp.server.stdio import stdio_server

    server = memory_server(tools)

    async def run() -> None:
        streams = stdio_server(anyio.wrap_file(reader), anyio.wrap_file(writer))
        async with streams as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(run)


def memory_server(tools: McpTools) -> Any:
    """Return the SDK's server with the tools, for any transport."""
    load_sdk()
    import mcp_types as types
    from anyio import to_thread
    from mcp.server.lowlevel import Server

    async def list_tools(
        _context: "ServerRequestContext[Any]", _params: Any
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=each.name,
                    title=each.title,
                    description=each.description,
                    input_schema=dict(each.parameters),
                    annotations=types.ToolAnnotations(
                        read_only_hint=not each.writes, open_world_hint=False
                    ),
                )
                for each in tools.listed()
            ]
        )

    async def call_tool(
        context: "ServerRequestContext[Any]", params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        client = _client_of(context)
        result = await to_thread.run_sync(tools.call, params.name, params.arguments, client)
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=result.text)]
        return types.CallToolResult(content=content, is_error=result.is_error)

    return Server(
        NAME,
        version=VERSION,
        title="Commonplace",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _client_of(context: "ServerRequestContext[Any]") -> str:
    params = context.session.client_params
    return params.client_info.name if params is not None else _UNNAMED
