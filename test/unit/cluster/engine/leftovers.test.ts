import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { removeEmpty, scopesOfPods } from '../../../../src/cluster/engine/remove-kubernetes.ts'

it('empty folders are removed from below upwards; one that is used stays, with those around it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'leftovers-'))
  for (const path of ['pods/a/b', 'pods/c', 'used/a/b', 'used/c'])
    mkdirSync(join(folder, path), { recursive: true })
  writeFileSync(join(folder, 'used/a/b/socket'), '')
  await removeEmpty(join(folder, 'pods'))
  await removeEmpty(join(folder, 'used'))
  await removeEmpty(join(folder, 'absent'))
  expect(readdirSync(folder, { recursive: true })).toEqual(['used', 'used/a', 'used/a/b', 'used/a/b/socket'])
})

it('the scopes of pods are told by their slice from those of another containerd', () => {
  const shown = [
    'Id=cri-containerd-1.scope\nSlice=kubepods-burstable-pod1.slice',
    'Slice=kubepods.slice\nId=cri-containerd-2.scope',
    'Id=cri-containerd-3.scope\nSlice=system.slice',
    '',
  ].join('\n\n')
  expect(scopesOfPods(shown)).toEqual(['cri-containerd-1.scope', 'cri-containerd-2.scope'])
  expect(scopesOfPods('')).toEqual([])
})
