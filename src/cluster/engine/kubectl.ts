import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseExactJson } from '../../base/json.ts'
import { StepFailed } from '../loop/step.ts'
import { kubernetesCommands } from './step-lines.ts'
import { currentProgram, kubernetesFiles, type ClusterPaths } from './paths.ts'

const podLogs = '/var/log/pods'

/**
 * Last log line of a container of a static pod, for a reason: it says why it does not run where the API server cannot be asked.
 * @returns empty where there is nothing
 */
async function lastWords(container: string, folder = podLogs): Promise<string> {
  const pods = (await readdir(folder).catch(() => [])).filter((name) =>
    name.startsWith(`kube-system_${container}-`),
  )
  const logs = await Promise.all(
    pods.map(async (pod) => {
      const of = join(folder, pod, container)
      const names = await readdir(of).catch(() => [])
      // `<number of the restart>.log`
      const numbers = names.flatMap((name) => (/^\d+\.log$/.test(name) ? [Number.parseInt(name)] : []))
      return numbers.length > 0 ? [join(of, `${Math.max(...numbers)}.log`)] : []
    }),
  )
  const texts = await Promise.all(logs.flat().map((path) => readFile(path, 'utf8').catch(() => '')))
  return wordsOf(texts.join('\n'))
}

/** @param what a sentence about a container, by default its name @returns the sentence with the container's last line */
export const withLastWords = async (container: string, what = container): Promise<string> =>
  `${what} (${(await lastWords(container)) || 'no output'})`

/** @param log as the container runtime writes it: `<time> stdout|stderr F|P <text>` @returns the newest line of an error, or the newest */
export function wordsOf(log: string): string {
  const lines = log
    .split('\n')
    .flatMap((line) => {
      const [, time, text] = /^(\S+) (?:stdout|stderr) [FP] (.*\S)/.exec(line) ?? []
      return time === undefined || text === undefined ? [] : [{ time, text }]
    })
    .sort((one, other) => (one.time < other.time ? -1 : 1))
  const errors = lines.filter(({ text }) =>
    /^(?:Error|E\d{4} |F\d{4} |panic)|"level":"(?:fatal|error)"/.test(text),
  )
  return (errors.at(-1) ?? lines.at(-1))?.text.slice(0, 300) ?? ''
}

/** Runs kubectl as the administrator of Kubernetes. @returns its output @throws StepFailed with its error output */
export const kubectl = (
  { programs }: Pick<ClusterPaths, 'programs'>,
  args: readonly string[],
  timeoutMs = 60_000,
): Promise<string> =>
  kubernetesCommands.run(
    currentProgram(programs, 'kubectl'),
    [`--kubeconfig=${kubernetesFiles.adminConfig}`, ...args],
    { timeoutMs },
  )

/**
 * Gets an object or a list by kubectl, with exact whole numbers, as the client of the API server gives them.
 * @param args of `kubectl get`
 * @returns undefined where it is not there
 * @throws StepFailed as `kubectl`
 */
export async function getByKubectl<T>(
  paths: Pick<ClusterPaths, 'programs'>,
  args: readonly string[],
  timeoutMs?: number,
): Promise<T | undefined> {
  const shown = await kubectl(paths, ['get', ...args, '--output=json', '--ignore-not-found'], timeoutMs)
  return shown.trim() === '' ? undefined : (parseExactJson(shown) as T)
}

/** Waits until the API server says that it is ready. @returns whether it did in time */
export async function waitUntilReady(
  paths: Pick<ClusterPaths, 'programs'>,
  timeoutMs: number,
): Promise<boolean> {
  const end = Date.now() + timeoutMs
  while (Date.now() < end) {
    const answer = await kubectl(paths, ['get', '--raw=/readyz', '--request-timeout=5s'], 10_000).catch(
      () => '',
    )
    if (answer.trim() === 'ok') return true
    await delay(500)
  }
  return false
}

/**
 * Waits as `waitUntilReady`.
 * @param silence the sentence to fail with, which gets the last words of the API server
 * @param advice added after it
 * @throws StepFailed
 */
export async function expectReady(
  paths: Pick<ClusterPaths, 'programs'>,
  timeoutMs: number,
  silence: string,
  advice = '',
): Promise<void> {
  if (await waitUntilReady(paths, timeoutMs)) return
  throw new StepFailed(`${await withLastWords('kube-apiserver', silence)}${advice}`)
}
