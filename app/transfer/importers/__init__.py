"""Importers: streaming readers of export formats that tolerate damaged data.

reading          read_export(): detects the formats in a path and yields conversations
chatgpt, claude  one importer each, as are `chatbox`, `cherry_studio`, `deepseek_grok`, `gemini_app`, `jan`,
                 `librechat`, `lm_studio`, `open_webui`; `chatgpt_content` and `citations` are parts of the
                 first, `claude_extras` of the second
commonplace      exports of this program
agents           the importers of coding agents
parsing          what all importers share

A new format needs a module with a reader and a `Format`, and a line in `reading.FORMATS`.
"""

from app.transfer.importers.reading import read_export

__all__ = ["read_export"]
