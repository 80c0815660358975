// COORD_PLUGIN: asks the coordinator before each tool of OpenCode runs. Written by
// `coord init --agent opencode`, taken out by `coord init --agent opencode --remove`.
//
// A call is stopped by throwing; when nobody answers, calls that could write are stopped, too.
import net from "node:net"
import { spawnSync } from "node:child_process"

const SOCKET = "{socket}"
const PYTHON = "{python}"
const PATIENCE_MS = 600_000

function ask(event, said) {
  const body = Buffer.from(JSON.stringify(said))
  const token = process.env.COORD_AGENT_TOKEN || "-"
  return new Promise((resolve, reject) => {
    const link = net.createConnection(SOCKET)
    const parts = []
    link.setTimeout(PATIENCE_MS, () => link.destroy(new Error("no answer in time")))
    link.on("connect", () => {
      link.write(`hook {profile}:${event} ${token} ${body.length}\n`)
      link.write(body)
    })
    link.on("error", reject)
    link.on("close", () => reject(new Error("the coordinator hung up")))
    link.on("data", (part) => {
      parts.push(part)
      const all = Buffer.concat(parts)
      const end = all.indexOf(10)
      if (end < 0) return
      const [code, out, err] = all.subarray(0, end).toString().split(" ").map(Number)
      const rest = all.subarray(end + 1)
      if (rest.length < out + err) return
      link.destroy()
      if (code !== 0) return resolve({ deny: rest.subarray(out, out + err).toString() })
      try {
        resolve(out ? JSON.parse(rest.subarray(0, out).toString()) : {})
      } catch (bad) {
        reject(bad)
      }
    })
  })
}

export const CoordPlugin = async (ctx) => {
  const parents = new Map()
  const identity = (session) => {
    let root = session
    while (parents.has(root)) root = parents.get(root)
    return { session_id: root, agent_id: root === session ? "" : session, cwd: ctx.directory }
  }
  const quietly = async (event, said) => {
    try {
      return await ask(event, said)
    } catch {
      return {}
    }
  }
  // The handshake: a coordinator that is not there is started now, before any tool runs.
  try {
    await ask("hello", { cwd: ctx.directory })
  } catch {
    spawnSync(PYTHON, ["-m", "coordinator.cli.main", "up"], { cwd: ctx.directory, stdio: "ignore" })
  }
  return {
    event: async ({ event }) => {
      const info = event.properties?.info
      if (event.type === "session.created" && info?.id) {
        if (info.parentID) parents.set(info.id, info.parentID)
        await quietly("session", identity(info.id))
      }
      if (event.type === "session.idle") {
        const who = identity(event.properties.sessionID)
        await quietly(who.agent_id ? "sub stop" : "end", who)
      }
    },
    "tool.execute.before": async (input, output) => {
      let said
      try {
        said = await ask("before", {
          ...identity(input.sessionID), tool_name: input.tool, tool_input: output.args,
          tool_use_id: input.callID,
        })
      } catch (bad) {
        throw new Error(
          `coord: no coordinator answers (${bad.message}), so this call is stopped. \`coord up\` starts it.`,
        )
      }
      if (said.deny) throw new Error(said.deny)
      if (said.command) output.args.command = said.command
      // coord's own tools: by the call's id the coordinator knows whose call it is.
      if (input.tool.startsWith("coord_")) output.args.coord_call = input.callID
    },
    "tool.execute.after": async (input, output) => {
      const said = await quietly("after", {
        ...identity(input.sessionID), tool_name: input.tool, tool_input: input.args ?? {},
        tool_use_id: input.callID, tool_response: String(output.output ?? "").slice(0, 20_000),
      })
      if (said.context) output.output = `${output.output ?? ""}\n\n${said.context}`
    },
  }
}
