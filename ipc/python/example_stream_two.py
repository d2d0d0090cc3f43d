#!/usr/bin/python3
"""Streams two requests over one socket at once and cancels the second after three tokens.

    example_stream_two.py [ENDPOINT]      needs python3-zmq, python3-msgpack
Exits 1 unless each request gets exactly one `done`, its last message.
"""
import sys
import msgpack
import zmq

socket = zmq.Context().socket(zmq.DEALER)
socket.connect(sys.argv[1] if len(sys.argv) > 1 else "ipc:///run/pantheon/pantheond.sock")


def ask(request_id, op, **fields):
    socket.send(msgpack.packb({"v": 1, "id": request_id, "op": op, **fields}))


ask("one", "generate", prompt="Once upon a time", max_tokens=32)
ask("two", "generate", prompt="It was a dark night")
done, ok = {}, True
# Goes on for two seconds after both are done, to see that nothing else comes.
while socket.poll(2_000 if len(done) == 2 else 120_000):
    reply = msgpack.unpackb(socket.recv())
    name, event = reply["id"], reply["ev"]
    ok &= name not in done and event != "error"
    if event == "token":
        print(f"{name}: {reply['text']!r}", flush=True)
        if name == "two" and reply["i"] == 2:
            ask("stop", "cancel", target="two")
    elif event in ("done", "error") and name in ("one", "two"):
        done[name] = reply.get("finish", event)
print(done)
sys.exit(0 if ok and len(done) == 2 else 1)
