#!/usr/bin/env python3
"""A client process to be killed: killed_client.py ENDPOINT REQUEST…, each request a JSON map of `generate`. Says
"streaming" once one of them has given a token, then reads on until the end of its days."""

import json
import sys
import time

from client import Client


def main():
    endpoint, *requests = sys.argv[1:]
    with Client(endpoint) as client:
        for fields in requests:
            client.send("generate", **json.loads(fields))
        is_streaming = False
        while True:
            events = client.drain()
            if not is_streaming and any("token" in event for event in events):
                is_streaming = True
                print("streaming", flush=True)
            time.sleep(0.001)


if __name__ == "__main__":
    main()
