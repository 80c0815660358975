// One round by the types that openapi-typescript made (coord.d.ts): lock, be refused, claim, review.
// Arguments: the address, the operator's token, the repository.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import createClient from "openapi-fetch";
import type { components, paths } from "./coord.js";

const [base, bearer, root] = process.argv.slice(2) as [string, string, string];
const as = (token: string) =>
  createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${token}` } });

function check(true_: unknown, what: string): asserts true_ {
  if (!true_) throw new Error(what);
}

const person = as(bearer);
async function agent(name: string) {
  const { data } = await person.POST("/v1/agents", { body: { agent: name } });
  check(data, "registered");
  return as(data.token);
}

const ann = await agent("ann");
const bob = await agent("bob");
const got = await ann.POST("/v1/locks", { body: { agent: "ann", resources: ["a.py"], ttl_s: 60 } });
check(got.data && got.data.leases[0]!.fencing_token > 0, "granted");
const refused = await bob.POST("/v1/locks", { body: { agent: "bob", resources: ["a.py"] } });
const no: components["schemas"]["Refusal"] | undefined = refused.error;
check(refused.response.status === 423 && no?.error.code === "LOCKED", "refused");
const listed = await bob.GET("/v1/locks", { params: { query: { resource: "a.py", limit: 5 } } });
check(listed.data?.items.map((one) => one.locked_by).join() === "ann", "listed");

const task = await person.POST("/v1/tasks", { body: { title: "B", resources: ["b.py"] } });
check(task.data, "added");
const id = task.data.task;
const claimed = await bob.POST("/v1/tasks/claim", { body: { agent: "bob" } });
check(claimed.data?.task.task === id, "claimed");
const done = await bob.POST("/v1/tasks/{task}/done", {
  params: { path: { task: id } },
  body: { agent: "bob", result: "done" },
});
check(done.data?.state === "done", "done");

writeFileSync(join(root, "a.py"), "half\n");
const left = await ann.POST("/v1/agents/leave", {
  body: { agent: "ann", clean: false, reason: "it was stopped" },
});
const review = left.data?.reviews[0];
check(review, "flagged");
const shown = await person.GET("/v1/reviews/{review}", { params: { path: { review } } });
check(shown.data?.files[0]!.diff.includes("+half"), "shown");
const kept = await person.POST("/v1/reviews/{review}/decide", {
  params: { path: { review } },
  body: { verdict: "keep", by: "Maria" },
});
check(kept.data?.state === "kept", "kept");
const nowhere = await person.GET("/v1/tasks/{task}", { params: { path: { task: "T-99" } } });
check(nowhere.response.status === 404 && nowhere.error?.error.code === "UNKNOWN_TASK", "unknown");
console.log("a whole round");
