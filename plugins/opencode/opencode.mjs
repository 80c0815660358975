// Asks the coordinator before each tool of OpenCode runs. Loaded by `opencode.js`, which `coord init`
// writes into a repository, and by the plugin package (plugins/opencode).
//
// A call is stopped by throwing; when nobody answers, calls that could write are stopped, too.
import { ask as question, asking } from "./ask.mjs"

// What a tool answered before coord added to it: another plugin of coord is to tell the same.
const ANSWERED = Symbol.for("coord.answered")

// `start`: the command that starts a coordinator which is not there.
export const plugin = (socket, profile, start) => async (ctx) => {
  const ask = asking(socket, profile, start, ctx.directory)
  const parents = new Map()
  const identity = (session) => {
    let root = session
    while (parents.has(root)) root = parents.get(root)
    return { session_id: root, agent_id: root === session ? "" : session, cwd: ctx.directory }
  }
  const quietly = async (event, said, by = ask) => {
    try {
      return await by(event, said)
    } catch {
      return {}
    }
  }
  // What has ended is told to whoever is there: nothing is started for it.
  const ended = (event, said) => quietly(event, said, (...told) => question(socket, profile, ...told))
  // The handshake: a coordinator that is not there is started now, before any tool runs.
  await quietly("hello", { cwd: ctx.directory })
  return {
    event: async ({ event }) => {
      const info = event.properties?.info
      if (event.type === "session.created" && info?.id) {
        if (info.parentID) parents.set(info.id, info.parentID)
        await quietly("session", identity(info.id))
      }
      if (event.type === "session.idle") {
        const who = identity(event.properties.sessionID)
        await ended(who.agent_id ? "sub stop" : "end", who)
      }
    },
    "tool.execute.before": async (input, output) => {
      // coord's own tools: by the call's id the coordinator knows whose call it is.
      if (input.tool.startsWith("coord_")) output.args.coord_call = input.callID
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
    },
    "tool.execute.after": async (input, output) => {
      output[ANSWERED] ??= String(output.output ?? "").slice(0, 20_000)
      const said = await quietly("after", {
        ...identity(input.sessionID), tool_name: input.tool, tool_input: input.args ?? {},
        tool_use_id: input.callID, tool_response: output[ANSWERED],
      })
      if (said.context) output.output = `${output.output ?? ""}\n\n${said.context}`
    },
  }
}
