import { setTimeout as delay } from 'node:timers/promises'
import { parseExactJson } from '../../base/json.ts'
import { StepFailed } from '../step.ts'
import { kubernetesCommands } from './step-commands.ts'
import { withLastWords } from './last-words.ts'
import { kubernetesFiles, type ClusterPaths } from './paths.ts'
import { currentProgram } from './programs.ts'

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
 * @param advice what follows it
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
