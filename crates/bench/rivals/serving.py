"""How an engine is served: JSON, one object per line, requests on standard input, replies on standard
output. This stands in front of the script of every engine."""

import json
import os
import sys


def own_output():
    """Standard output for the replies alone: what an engine prints goes to standard error."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return replies


# Before anything else is imported.
REPLIES = own_output()


def reply(message):
    """One line for the benchmark, at once."""
    print(json.dumps(message), file=REPLIES, flush=True)


def serve(start):
    """Starts the engine, then answers until the input ends. `start` returns its name, its version and what
    responds to a request."""
    try:
        name, version, respond = start()
    except Exception as error:
        reply({"error": f"{type(error).__name__}: {error}"})
        return 1
    reply({"engine": name, "version": version})
    for line in sys.stdin:
        try:
            reply(respond(json.loads(line)))
        except Exception as error:
            reply({"error": f"{type(error).__name__}: {error}"})
    return 0


