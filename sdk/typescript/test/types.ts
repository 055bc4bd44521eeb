// Compiled and never run: what the types accept and refuse.
import { Client, type FunctionName, type ListName, type Params, type Reply } from "@svc/client";
import type { paths } from "../src/generated/openapi.js";

type Equal<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

/** The functions whose parameters are no object, or whose reply has no type. */
type Untyped = {
  [N in FunctionName]: Params<N> extends object ? (unknown extends Reply<N> ? N : never) : N;
}[FunctionName];

// The reply of a cloud function of a user's backend is what that function returns.
export const allAreTyped: Equal<Untyped, "svc_runCloudFunction"> = true;
export const allAreNamed: Equal<`/functions/${FunctionName}`, keyof paths> = true;
export const listsAreKnown: Equal<
  Extract<ListName, "svc_getProjects" | "getApp">,
  "svc_getProjects"
> = true;

export async function accepted(svc: Client): Promise<string[]> {
  const { id }: { id: string } = await svc.call("svc_createProject", { name: "Shop" });
  await svc.call("getCurrentUser");
  await svc.call("svc_getProjects", {}, { signal: AbortSignal.timeout(1000) });
  const names: string[] = [id];
  for await (const app of svc.list("listApps", { projectId: id })) names.push(app.name);
  return names;
}

export async function refused(svc: Client): Promise<void> {
  // @ts-expect-error There is no such function.
  await svc.call("svc_createProjekt", { name: "Shop" });
  // @ts-expect-error The name is missing.
  await svc.call("svc_createProject", {});
  // @ts-expect-error The parameters are missing.
  await svc.call("svc_createProject");
  // @ts-expect-error The name is a text.
  await svc.call("svc_createProject", { name: 1 });
  // @ts-expect-error There is no such parameter.
  await svc.call("svc_createProject", { name: "Shop", colour: "red" });
  // @ts-expect-error This is no list.
  svc.list("getApp", { appId: "app_…" });
  // @ts-expect-error A project has no such field.
  void (await svc.call("svc_getProject", { projectId: "prj_…" })).colour;
}
