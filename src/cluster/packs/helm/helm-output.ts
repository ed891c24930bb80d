import type { KubernetesObject } from '../../../kubernetes/client.ts'
import { entryOf, type InventoryEntry } from '../../../kubernetes/inventory.ts'
import type { Revision } from './cure.ts'

/** Reads `helm history --output json`. */
export const readHistory = (output: string): readonly Revision[] => JSON.parse(output) as Revision[]

/**
 * Reads the objects in `helm status --show-resources --output json`, in which each kind has a list of its objects as they are in the
 * cluster. Pods of workloads are beside them as lists with the key `v1/Pod(related)`; they are left out.
 */
export function readResources(output: string): readonly InventoryEntry[] {
  const { info } = JSON.parse(output) as {
    info: { resources?: Readonly<Record<string, readonly KubernetesObject[]>> }
  }
  return Object.entries(info.resources ?? {})
    .filter(([kind]) => !kind.endsWith('(related)'))
    .flatMap(([, objects]) => objects)
    .map(entryOf)
}

interface Hook {
  readonly events: readonly string[]
  readonly last_run?: { readonly phase?: string }
}

/**
 * Whether hooks that run only with an installation, not with an upgrade, have not succeeded.
 * @param output of `helm status --output json` for the revision of the installation
 */
export function missesInstallHooks(output: string): boolean {
  const { hooks } = JSON.parse(output) as { hooks?: readonly Hook[] | null }
  const isMissed = ({ events, last_run: last }: Hook) =>
    last?.phase !== 'Succeeded' &&
    ['pre', 'post'].some((when) => events.includes(`${when}-install`) && !events.includes(`${when}-upgrade`))
  return (hooks ?? []).some(isMissed)
}

// For example: ready.go:303: 2026-11-23 11:18:31.765146494 +0000 UTC m=+2.189066634 [debug] Deployment is not ready: shop/web. 0 out …
const readyLine = /^ready\.go:\d+: .*? \[debug\] (.+)$/

/** What helm waits for, from a line of its standard error with `--debug`; undefined for other lines. */
export const waitingOf = (line: string): string | undefined => readyLine.exec(line)?.[1]

const debugLine = /^\w+\.go:\d+: .*? \[debug\]/

/**
 * Why helm failed, from the lines of its standard error.
 * @returns one line: what follows `Error:`, without the lines of `--debug`; whole, since values in it are masked only by the daemon
 */
export function reasonOf(lines: readonly string[]): string {
  const begin = lines.findLastIndex((line) => line.startsWith('Error: '))
  const rest = lines.slice(Math.max(begin, 0))
  const end = rest.findIndex((line) => debugLine.test(line))
  const reason = (end < 0 ? rest : rest.slice(0, end))
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('; ')
    .replace(/^Error: /, '')
  return reason || 'it gave no reason'
}
