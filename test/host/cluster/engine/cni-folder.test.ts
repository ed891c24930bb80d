import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { fillCniFolder, restoreCniFolder } from '../../../../src/cluster/engine/containerd.ts'

let home: string
let folders: { programs: string; debian: string }
let paths: { cniRecord: string }
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'edgehostd-cni-'))
  folders = { programs: join(home, 'opt/cni/bin'), debian: join(home, 'lib/cni') }
  paths = { cniRecord: join(home, 'record.json') }
  await mkdir(folders.debian, { recursive: true })
  for (const name of ['loopback', 'bridge'])
    await writeFile(join(folders.debian, name), `debian ${name}`, { mode: 0o755 })
})
afterEach(() => rm(home, { recursive: true }))
const fill = () => fillCniFolder(paths, () => undefined, folders)

it('the plugins of Debian are copied beside those of a network, and what came is removed again', async () => {
  await fill()
  expect(await readFile(join(folders.programs, 'bridge'), 'utf8')).toBe('debian bridge')
  expect((await stat(join(folders.programs, 'bridge'))).mode & 0o111).toBe(0o111)
  // The network of the cluster brings one of its own, and overwrites another.
  await writeFile(join(folders.programs, 'flannel'), 'network')
  await writeFile(join(folders.programs, 'bridge'), 'network')
  await fill()
  expect(await readFile(join(folders.programs, 'bridge'), 'utf8')).toBe('network')
  expect(await readFile(join(folders.debian, 'bridge'), 'utf8')).toBe('debian bridge')
  await restoreCniFolder(paths, folders)
  expect(await readdir(home)).toEqual(['lib', 'opt'])
  expect(await readdir(join(home, 'opt'))).toEqual([])
})

it('what was in the folder before stays', async () => {
  await mkdir(folders.programs, { recursive: true })
  await writeFile(join(folders.programs, 'bridge'), 'own')
  await fill()
  await restoreCniFolder(paths, folders)
  expect(await readdir(folders.programs)).toEqual(['bridge'])
  expect(await readFile(join(folders.programs, 'bridge'), 'utf8')).toBe('own')
})

it('without a record nothing is removed', async () => {
  await mkdir(folders.programs, { recursive: true })
  await writeFile(join(folders.programs, 'bridge'), 'own')
  await restoreCniFolder(paths, folders)
  expect(await readdir(folders.programs)).toEqual(['bridge'])
})

it('a host without the plugin for loopback is refused with the package', async () => {
  await rm(join(folders.debian, 'loopback'))
  await expect(fill()).rejects.toThrow('install the package containernetworking-plugins')
})

it.each(['{"exists": true, "nam', '{}'])(
  'a record that reads %j is not made anew, and by it nothing is removed: the record of the host decides',
  async (text) => {
    await fill()
    await writeFile(paths.cniRecord, text)
    await fill()
    expect(await readFile(paths.cniRecord, 'utf8')).toBe(text)
    await restoreCniFolder(paths, folders)
    expect((await readdir(folders.programs)).sort()).toEqual(['bridge', 'loopback'])
  },
)
