import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Event } from '../../src/cluster/events/schemas.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'

// The journal of a booted host, read by a daemon that is in its sandbox.

const right = 'journal canary 1123'
const path = '/v1/edge-mgmt/edgehosts/current/error-logs'

let host: Edgehostd
let admin: string
let viewer: string
beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
  await host.addUser({ name: 'guest', password: right })
  admin = (await host.openSession('chief', right)).token
  viewer = (await host.openSession('guest', right)).token
})
afterAll(() => host.unplug())

const errors = async (logCount: number) => {
  const reply = await host.http('GET', `${path}?logCount=${logCount}`, { token: admin })
  expect(reply).toMatchObject({ status: 200 })
  return (reply.json as { items: Event[] }).items
}
/** Runs a unit that writes these lines to standard error and ends with an exit code. */
const runUnit = (name: string, lines: readonly string[], exitCode = 0) =>
  host.sh(
    `systemd-run --quiet --wait --description=test --unit=${name} sh -c '${lines.map((line) => `echo "${line}" >&2`).join('; ')}; exit ${exitCode}' || true
     journalctl --sync`,
  )

it('errors of kubelet and containerd are found by their text, and what systemd says of a unit that fails', async () => {
  await runUnit('kubelet', [
    'I1123 10:00:00.000001 1 server.go:1] starting',
    'E1123 10:00:00.000002 1 kubelet.go:2] failed to pull https://anna:hunter2@registry.example/x',
  ])
  await runUnit('edgehostd-containerd', ['time=1 level=info msg=fine', 'time=2 level=error msg=broken'], 3)
  const found = await errors(50)
  expect(found.map(({ source, message }) => `${source.component}: ${message}`)).toEqual(
    expect.arrayContaining([
      'kubelet: E1123 10:00:00.000002 1 kubelet.go:2] failed to pull https://anna:********@registry.example/x',
      'edgehostd-containerd: time=2 level=error msg=broken',
      "systemd: edgehostd-containerd.service: Failed with result 'exit-code'.",
    ]),
  )
  expect(found.some(({ message }) => message.includes('starting') || message.includes('fine'))).toBe(false)
  const failed = found.find(({ message }) => message.includes('Failed with result'))
  expect(failed?.involvedObject).toEqual({ kind: 'Unit', name: 'edgehostd-containerd.service' })
  expect(await errors(1)).toHaveLength(1)
})

it('errors of edgehostd are found by their priority, and that it was killed', async () => {
  const line =
    '{"level":50,"time":"2026-01-31T08:00:00.000Z","err":{"message":"no room"},"msg":"a write failed"}'
  await host.write('/root/line', `<3>${line}\n<6>{"level":30,"msg":"all is well"}\n`)
  await host.sh('systemctl kill --signal=SIGKILL edgehostd')
  await host.configureUnit('line', '[Service]\nExecStartPost=/bin/cat /root/line\n')
  await host.sh('journalctl --sync')
  admin = (await host.openSession('chief', right)).token
  const found = (await errors(1_000)).map(({ source, message }) => `${source.component}: ${message}`)
  expect(found).toContain('edgehostd: a write failed: no room')
  expect(found).toContain("systemd: edgehostd.service: Failed with result 'signal'.")
  expect(found.join()).not.toContain('all is well')
})

it('only administrators read the journal, and the number has to be given', async () => {
  expect(await host.http('GET', `${path}?logCount=1`, { token: viewer })).toMatchObject({ status: 403 })
  for (const query of ['', '?logCount=0', '?logCount=1001', '?logCount=x'])
    expect(await host.http('GET', `${path}${query}`, { token: admin })).toMatchObject({
      status: 400,
      json: { details: { field: 'logCount' } },
    })
})

it.each([
  ['0', 'logCount must be >= 1'],
  ['10000', 'logCount must be <= 1000'],
  ['many', 'logCount must be integer'],
  ['1.5', 'logCount must be integer'],
  ['', 'logCount is missing'],
])('logCount=%s is refused with the reason', async (logCount, message) => {
  const reply = await host.http('GET', `${path}?logCount=${logCount}`, { token: admin })
  expect(reply).toMatchObject({ status: 400, json: { message, details: { field: 'logCount' } } })
})
