// coord's plugin for OpenCode, for all repositories: in one that does not use coord, and on a machine
// without coord, it does nothing. Written by `make plugins`; do not edit it here.
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { plugin } from "./opencode.mjs"

// Where pipx and uv put commands; not all programs have it on PATH.
const PATH = [process.env.PATH ?? "", join(homedir(), ".local", "bin")].join(delimiter)

const usesCoord = (at) => existsSync(join(at, ".coord")) || (dirname(at) !== at && usesCoord(dirname(at)))

const command = (name) =>
  PATH.split(delimiter).map((folder) => join(folder, name)).find((path) => existsSync(path))

export const CoordPlugin = async (ctx) => {
  const found = command("coord-plugin")
  if (!found) {
    if (usesCoord(ctx.directory)) {
      const message = "coord: this repository uses coord, but its command coord-plugin is not on this machine, "
        + "so nothing is asked before a write. Install coord, or take its plugin out."
      await ctx.client.app.log({ body: { service: "coord", level: "warn", message } }).catch(() => {})
    }
    return {}
  }
  const socket = spawnSync(found, ["socket", ctx.directory], { cwd: ctx.directory }).stdout?.toString()
  if (!socket) return {}
  const hooks = await plugin(socket, "opencode+plugin", [found, "up"])(ctx)
  return {
    ...hooks,
    config: async (config) => {
      config.mcp ??= {}
      config.mcp.coord ??= { type: "local", command: [found, "mcp", "opencode"], enabled: true }
    },
  }
}
