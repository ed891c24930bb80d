import { mkdtemp, rename, rm, symlink, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { watchUnits } from '../../../../src/cluster/engine/observe.ts'
import { captureLog } from '../../../support/https-server.ts'
import { waitFor } from '../../../support/wait-for.ts'

let folder: string
let changes: number
let stop: () => void
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-units-'))
  changes = 0
  stop = watchUnits({ onChange: () => void (changes += 1), log: captureLog().log, folder })
})
afterEach(async () => {
  stop()
  await rm(folder, { recursive: true })
})

const link = (unit: string) => join(folder, `invocation:${unit}`)
/** As systemd does: a new link beside the old one, and then in its place. */
async function start(unit: string): Promise<void> {
  const made = join(folder, `.#invocation:${unit}`)
  await symlink('0123456789abcdef', made)
  await rename(made, link(unit))
}
/** @returns how many changes an act is, once its last one was reported */
async function changesOf(act: () => Promise<void>): Promise<number> {
  const before = changes
  await act()
  await waitFor(() => expect(changes).toBeGreaterThan(before))
  return changes - before
}

it('a start, another start and the end of kubelet and containerd are reported', async () => {
  for (const unit of ['kubelet.service', 'edgehostd-containerd.service']) {
    expect(await changesOf(() => start(unit))).toBeGreaterThan(0)
    expect(await changesOf(() => start(unit))).toBeGreaterThan(0)
    expect(await changesOf(() => unlink(link(unit)))).toBeGreaterThan(0)
  }
})

it('the units of containers and of other services are not', async () => {
  await start('cri-containerd-0bdb9daad2efb80335478d35eaccf54b.scope')
  await start('other-kubelet.service')
  await start('containerd.service')
  expect(changes).toBe(0)
  // Events of one folder come in order, so those before would have been reported.
  expect(await changesOf(() => start('kubelet.service'))).toBe(1)
})
