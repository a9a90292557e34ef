"""Names that vulture reports as unused although they are used, grouped by their user.

Patterns of names that Qt and pytest call are in pyproject.toml. Remove a name when vulture no longer
reports it.
"""


class _Used:
    def __getattr__(self, name: str) -> object:
        return name


_ = _Used()

# argparse, httpx2, logging and markdown-it call what we override.
_.formatException
_.row_factory
_.print_help
_.handle_async_request
_.normalizeLink
_.normalizeLinkText

# onnxruntime, tokenizers and ziamath read what we set.
_.svg2
_.precision
_.intra_op_num_threads
_.inter_op_num_threads
_.log_severity_level
_.post_processor

# Qt reads it.
_.textElideMode

# hypothesis calls it after every run of a stateful test.
_.teardown

# Named in annotations that are strings.
_.Encoding
_.ServerRequestContext
_.AnyTokenizer

# Python calls it for each subclass; a Protocol describes a callable; mypy reads a static check.
_.__init_subclass__
_.__call__
_._is_metered

# Colors of code and of the style sheet are read by name.
_.syntax_keyword
_.syntax_string
_.syntax_comment
_.syntax_number
_.syntax_name
_.syntax_type
_.syntax_operator

# Columns of tables: `app.storage.engine.aggregate.row_of` reads them by name.
_.call_number
_.routine_uid

# uvicorn reads it.
_.should_exit

# PySide's support library calls it.
_._mod_uses_pyside
