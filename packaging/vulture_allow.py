"""What vulture takes for unused and is not, each name under the one who uses it.

Patterns of names that Qt and pytest call are in pyproject.toml. A name leaves this list when
vulture is content without it.
"""


class _Used:
    def __getattr__(self, name: str) -> object:
        return name


_ = _Used()

# argparse, httpx2, logging and markdown-it call what we override.
_.formatException
_.print_help
_.handle_async_request
_.normalizeLink
_.normalizeLinkText

# onnxruntime and Python read what we set.
_.intra_op_num_threads
_.inter_op_num_threads
_.log_severity_level
_.__suppress_context__

# hypothesis calls it after every run of a stateful test.
_.teardown

# Ports that several classes implement; the first who takes any of them names them here no more.
_.Provider
_.Embedder

# Named in annotations that are strings.
_.Encoding

# Parameters of a Protocol are named for those who implement it.
_.is_cancelled
_.request
_.passage_ids

# Colours of code and of the style sheet are asked for by name.
_.success
_.syntax_comment
_.syntax_number
_.syntax_name
_.syntax_type
_.syntax_operator
