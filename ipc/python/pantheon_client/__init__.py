"""Talks to pantheond, the language model server of this host.

    from pantheon_client import Client

    with Client() as client:
        print(client.generate("Once upon a time", max_tokens=50).text)
        print(client.chat([{"role": "user", "content": "Name three rivers."}]).text)
        with client.stream(prompt="Once upon a time") as stream:
            for token in stream:
                print(token.text, end="", flush=True)
        print(stream.reply.usage.completion_tokens)

Needs python3-zmq and python3-msgpack. The protocol behind it is ipc/protocol.md.
"""

from .client import Client, Stream, default_endpoints
from .values import (
    Accepted,
    PantheonError,
    Progress,
    Reply,
    Timings,
    Token,
    ToolCall,
    Unreachable,
    Usage,
)

__all__ = [
    "Accepted",
    "Client",
    "PantheonError",
    "Progress",
    "Reply",
    "Stream",
    "Timings",
    "Token",
    "ToolCall",
    "Unreachable",
    "Usage",
    "default_endpoints",
]
