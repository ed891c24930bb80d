import { expect, it, onTestFinished } from 'vitest'
import { createKubernetesClient } from '../../../src/kubernetes/create-client.ts'
import { startPlayedApiServer } from '../../support/played-api-server.ts'

it('requests that come first at once share one reading of the kubeconfig, and later ones read it again after a failure', async () => {
  const server = await startPlayedApiServer(({ json }) => json({ gitVersion: 'v1' }))
  onTestFinished(() => server.stop())
  let [readings, isThere] = [0, false]
  const kubeconfig = () => {
    readings += 1
    return isThere ? server.kubeconfig() : Promise.reject(new Error('ENOENT: no such file'))
  }
  const client = createKubernetesClient({ kubeconfig })
  onTestFinished(() => client.close())
  const ask = async () =>
    (await Promise.allSettled([client.version(), client.version()])).map(({ status }) => status)

  expect(await ask()).toEqual(['rejected', 'rejected'])
  isThere = true
  readings = 0
  expect(await ask()).toEqual(['fulfilled', 'fulfilled'])
  expect(readings).toBe(1)
})

it('a request that waits for a connection which others have ends with its signal', async () => {
  const server = await startPlayedApiServer(() => undefined)
  onTestFinished(() => server.stop())
  const client = createKubernetesClient({ kubeconfig: server.kubeconfig })
  onTestFinished(() => client.close())
  const others = new AbortController()
  const waiting = Promise.allSettled([1, 2, 3, 4].map(() => client.version(others.signal)))
  let areOver = false
  void waiting.then(() => (areOver = true))
  await expect(client.version(AbortSignal.timeout(100))).rejects.toMatchObject({ reason: 'Aborted' })
  expect(areOver).toBe(false)
  others.abort()
  expect((await waiting).map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
})
