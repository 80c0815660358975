"""Where each command is. Made by `make docs`, checked by `make check`."""

from __future__ import annotations

#: Module below `coordinator` -> the commands that it declares, or carries out in the program.
MODULES = {
    "cli.agents": (
        "agents profiles",
    ),
    "cli.attach": (
        "attach",
    ),
    "cli.completion": (
        "completion",
        "__complete",
        "help",
    ),
    "cli.coordinators": (
        "ps",
        "down",
    ),
    "cli.daemon": (
        "up",
        "serve",
        "compact",
        "mcp",
        "web",
    ),
    "cli.doctor": (
        "doctor",
    ),
    "cli.guard": (
        "guard install",
        "guard check",
        "guard remove",
        "commit",
    ),
    "cli.impact": (
        "impact",
    ),
    "cli.init": (
        "init",
    ),
    "cli.launch": (
        "launch",
    ),
    "cli.logs": (
        "logs",
    ),
    "cli.merging": (
        "merge-file",
        "merge-driver install",
        "merge-driver remove",
    ),
    "cli.regions": (
        "regions",
        "commit-region",
        "propose",
    ),
    "cli.report": (
        "report",
    ),
    "cli.reviews": (
        "review",
        "review show",
        "review keep",
        "review revert",
        "review reassign",
        "review undo",
    ),
    "cli.run": (
        "run",
        "env",
    ),
    "cli.shims": (
        "shims install",
        "shims remove",
    ),
    "cli.state": (
        "state watch",
        "state own",
    ),
    "cli.status": (
        "status",
    ),
    "cli.story": (
        "events",
        "replay",
        "archive index",
    ),
    "cli.task_files": (
        "task import",
        "task export",
        "task template",
        "task schema",
        "task edit",
    ),
    "cli.trust": (
        "trust",
    ),
    "cli.verify": (
        "verify",
    ),
    "cli.wiring": (
        "hook",
    ),
    "commands.agents": (
        "agents",
        "agents list",
        "lost-writes",
        "sweep",
    ),
    "commands.completion": (
        "__complete",
    ),
    "commands.leases": (
        "lock",
        "unlock",
        "renew",
        "locks",
    ),
    "commands.requests": (
        "request file",
        "request list",
        "request approve",
        "request narrow",
        "request coexist",
        "request reject",
        "request withdraw",
    ),
    "slices.backlog.commands": (
        "task add",
        "task list",
        "task show",
        "task claim",
        "task done",
        "task fail",
        "task retry",
        "task cancel",
        "task outcome",
        "limit",
    ),
    "slices.messages.commands": (
        "tell",
        "messages",
    ),
    "slices.overlap.commands": (
        "overlap",
    ),
    "slices.pools.commands": (
        "ports",
    ),
    "slices.review.commands": (
        "review list",
        "review show",
    ),
    "slices.signals.commands": (
        "signal add",
        "signal list",
    ),
    "slices.state.commands": (
        "state get",
        "state list",
        "state put",
        "state patch",
        "state delete",
        "state history",
        "state change",
        "state changes",
        "state next",
        "state done",
        "state fail",
    ),
    "slices.steps.commands": (
        "dead list",
        "dead show",
        "dead retry",
        "dead drop",
    ),
    "slices.story.commands": (
        "explain",
        "archive search",
        "archive show",
        "events",
        "status",
    ),
}
