import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { removeDeadSockets, shimsOf } from '../../../../src/cluster/engine/remove-kubernetes.ts'

it('a socket whose process was killed is removed; one that a process listens on stays', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-shims-'))
  const live = createServer()
  onTestFinished(async () => {
    live.close()
    await rm(folder, { recursive: true })
  })
  await once(live.listen(join(folder, 'live')), 'listening')
  const killed = spawn(process.execPath, [
    ...['-e', "require('net').createServer().listen(process.argv[1], () => console.log('up'))"],
    join(folder, 'dead'),
  ])
  await once(killed.stdout, 'data')
  killed.kill('SIGKILL')
  await once(killed, 'exit')
  expect((await readdir(folder)).sort()).toEqual(['dead', 'live'])

  await removeDeadSockets(folder)
  expect(await readdir(folder)).toEqual(['live'])
  await removeDeadSockets(join(folder, 'absent'))
})

it('a shim is found by the containerd that it belongs to', async () => {
  const start = (address: string) => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => 1, 1000)', '--', '-address', address], {
      argv0: '/usr/bin/containerd-shim-runc-v2',
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    return once(child, 'spawn').then(() => child.pid)
  }
  const address = `/run/of-a-test-${process.pid}.sock`
  const own = await start(address)
  await start(`/run/of-another-${process.pid}.sock`)
  expect(await shimsOf(address)).toEqual([own])
})
