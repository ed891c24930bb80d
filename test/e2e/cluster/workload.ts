import { expect } from 'vitest'
import { eventually } from '../host/eventually.ts'
import type { ClusterClient } from './cluster-client.ts'
import type { ClusterHost } from './cluster-host.ts'
import { sensitiveValue, webAddress } from './plant-definition.ts'

/** What the workload answers on the host. */
export const askWorkload = async ({ host }: ClusterHost): Promise<string> =>
  (
    await host.output(['curl', '--silent', '--fail', '--max-time', '5', `http://${webAddress}/greeting`])
  ).trim()

/** Expects that the workload answers with the values of the variables, and that every pod is there once. */
export async function expectWorks(
  plant: ClusterHost,
  cluster: ClusterClient,
  timeoutMs = 60_000,
): Promise<void> {
  await eventually(async () => expect(await askWorkload(plant)).toBe('good morning'), timeoutMs)
  await eventually(async () => {
    const secret = await cluster.kubectl('-n', 'shop', 'get', 'secret', 'web', '-o', 'jsonpath={.data.token}')
    expect(Buffer.from(secret, 'base64').toString()).toBe(sensitiveValue)
  }, timeoutMs)
}
