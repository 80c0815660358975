"""Run by test_process on a small disk: fill it, see requests refused, make room, go on."""

import json
import sys
from pathlib import Path

from coordinator.client.client import Client
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal

root = Path(sys.argv[1]) / "repo"
root.mkdir()
client = Client(root, agent="ann")
client.acquire("first.py")
ballast = Path(sys.argv[1]) / "ballast"
with ballast.open("wb", buffering=0) as file:
    try:
        while True:
            file.write(b"\0" * 4096)
    except OSError:
        pass
told = {"refused": "", "alive": False, "reads": False, "recovered": False, "integrity": ""}
for i in range(3000):
    try:
        client.call(rq.TaskAdd(title=f"t{i}", prompt="p" * 5000))
    except Refusal as refusal:
        told["refused"] = refusal.code.value
        break
told["alive"] = client.call(rq.Health()).pid > 0
told["reads"] = [x.resource for x in client.call(rq.Locks()).items] == ["first.py"]
ballast.unlink()
told["recovered"] = bool(client.acquire("second.py").leases)
told["integrity"] = client.call(rq.Health(integrity=True)).integrity
Client(root).call(rq.Shutdown())
print(json.dumps(told))
