// COORD_PLUGIN: one question to the coordinator, for plugins that run inside an agent. Its answer is
// `deny` or `context`, if any; rejected when nobody answers.
import { spawn } from "node:child_process"
import { lstatSync } from "node:fs"
import net from "node:net"
import { dirname } from "node:path"

const PATIENCE_MS = 600_000
// Nobody is there; or whoever was has died, perhaps with the question: it may be asked twice.
const GONE = new Set(["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE"])

// The answer may change what the agent does: it is taken only from a socket of this user's own, in a
// folder that nobody else can write to.
function check(socket) {
  const me = process.geteuid()
  const folder = lstatSync(dirname(socket))
  if (!folder.isDirectory() || folder.uid !== me || folder.mode & 0o022) {
    throw new Error(`the folder of ${socket} is not this user's alone`)
  }
  if (lstatSync(socket).uid !== me) throw new Error(`${socket} belongs to another user`)
}

export function ask(socket, profile, event, said) {
  const body = Buffer.from(JSON.stringify(said))
  const token = process.env.COORD_AGENT_TOKEN || "-"
  return new Promise((resolve, reject) => {
    check(socket)
    const link = net.createConnection(socket)
    const parts = []
    link.setTimeout(PATIENCE_MS, () => link.destroy(new Error("no answer in time")))
    link.on("connect", () => {
      link.write(`hook ${profile}:${event} ${token} ${body.length} confirm\n`)
      link.write(body)
    })
    link.on("error", reject)
    link.on("close", () => reject(Object.assign(new Error("the coordinator hung up"), { code: "EPIPE" })))
    link.on("data", (part) => {
      parts.push(part)
      const all = Buffer.concat(parts)
      const end = all.indexOf(10)
      if (end < 0) return
      const [code, out, err] = all.subarray(0, end).toString().split(" ").map(Number)
      const rest = all.subarray(end + 1)
      if (rest.length < out + err) return
      link.end("told\n")
      if (code !== 0) return resolve({ deny: rest.subarray(out, out + err).toString() })
      try {
        resolve(out ? JSON.parse(rest.subarray(0, out).toString()) : {})
      } catch (bad) {
        reject(bad)
      }
    })
  })
}

// The same for one agent; a coordinator that is not there (it has ended, or was killed) is started,
// by the command `start` in the folder `cwd`, and asked again.
export function asking(socket, profile, start, cwd) {
  let starting
  const up = () => starting ??= new Promise((done) => {
    spawn(start[0], start.slice(1), { cwd, stdio: "ignore" }).on("close", done).on("error", done)
  }).finally(() => { starting = undefined })
  return async (event, said) => {
    try {
      return await ask(socket, profile, event, said)
    } catch (bad) {
      if (!GONE.has(bad.code)) throw bad
      await up()
      return ask(socket, profile, event, said)
    }
  }
}
