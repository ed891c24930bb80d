import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  finishCopy,
  listCopies,
  readCopy,
  removeOtherCopies,
  stagingOf,
  copyTree,
  damageOf,
  sumsOf,
} from '../../../../../src/cluster/engine/upgrade/copy.ts'
import {
  readChange,
  readVersion,
  versionInManifest,
  writeChange,
  writeVersion,
} from '../../../../../src/cluster/engine/notes.ts'
import { lackOfRoom, roomNeeds } from '../../../../../src/cluster/engine/upgrade/make-copy.ts'

const mib = 1_048_576

function folderOfTest(): string {
  const folder = mkdtempSync(join(tmpdir(), 'upgrade-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

function tree(): string {
  const folder = join(folderOfTest(), 'from')
  mkdirSync(join(folder, 'pki'), { recursive: true })
  mkdirSync(join(folder, 'tmp'))
  writeFileSync(join(folder, 'pki/ca.key'), 'key')
  chmodSync(join(folder, 'pki/ca.key'), 0o600)
  writeFileSync(join(folder, 'tmp/old'), 'old')
  writeFileSync(join(folder, 'admin.conf'), 'config')
  symlinkSync('admin.conf', join(folder, 'link.conf'))
  return folder
}

describe('a copied tree', () => {
  async function copied() {
    const from = tree()
    const to = join(from, '../to')
    await copyTree(from, to, (path) => path === join(from, 'tmp'))
    return { to, sums: await sumsOf(to) }
  }

  it('has the files, links and modes, and not what is left out', async () => {
    const { to, sums } = await copied()
    expect(sums.map(({ path, bytes }) => [path, bytes])).toEqual([
      ['admin.conf', 6],
      ['link.conf', 0],
      ['pki/ca.key', 3],
    ])
    expect(statSync(join(to, 'pki/ca.key')).mode & 0o777).toBe(0o600)
    expect(await damageOf(to, sums)).toBeUndefined()
  })

  it.each([
    ['pki/ca.key is missing', (to: string) => rmSync(join(to, 'pki/ca.key'))],
    ['pki/ca.key has 4 bytes instead of 3', (to: string) => writeFileSync(join(to, 'pki/ca.key'), 'keys')],
    ['pki/ca.key has another content', (to: string) => writeFileSync(join(to, 'pki/ca.key'), 'kez')],
    ['pki/more was added', (to: string) => writeFileSync(join(to, 'pki/more'), '')],
  ])('says where it is damaged: %s', async (words, damage) => {
    const { to, sums } = await copied()
    damage(to)
    expect(await damageOf(to, sums)).toBe(words)
  })
})

describe('the copies of Kubernetes', () => {
  const copyOf = (generation: number, from: string) => ({
    ...{ from, to: '1.34.4', generation, at: 1, etcd: '/var/lib/etcd', programs: {}, images: {}, sums: [] },
  })
  async function withCopies() {
    const paths = { copies: join(folderOfTest(), 'copies') }
    for (const [generation, from] of [
      [2, '1.32.1'],
      [11, '1.33.13'],
    ] as const) {
      mkdirSync(stagingOf(paths, generation), { recursive: true })
      await finishCopy(paths, copyOf(generation, from))
    }
    return paths
  }

  it('are listed, the newest first, and none is taken for whole before it is', async () => {
    const paths = await withCopies()
    mkdirSync(stagingOf(paths, 12))
    mkdirSync(join(paths.copies, '13'))
    const other = join(paths.copies, '14')
    mkdirSync(other)
    writeFileSync(join(other, 'copy.json'), JSON.stringify(copyOf(9, '1.33.13')))
    expect((await listCopies(paths)).map(({ generation, from }) => [generation, from])).toEqual([
      [11, '1.33.13'],
      [2, '1.32.1'],
    ])
    expect(await readCopy(join(paths.copies, '13'))).toBeUndefined()
  })

  it('a good upgrade keeps its own only, and nothing unfinished', async () => {
    const paths = await withCopies()
    mkdirSync(stagingOf(paths, 12))
    await removeOtherCopies(paths, 11)
    expect((await listCopies(paths)).map(({ generation }) => generation)).toEqual([11])
    expect(statSync(paths.copies).isDirectory()).toBe(true)
    expect(() => statSync(stagingOf(paths, 12))).toThrow('ENOENT')
  })

  it('a host without copies has none', async () => {
    expect(await listCopies({ copies: '/nowhere' })).toEqual([])
  })
})

describe('the notes', () => {
  const note = { from: '1.33.13', to: '1.34.4', generation: 3, phase: 'upgrading', at: 5 } as const
  it('of a change are read as they were written, and what says nothing is damaged', async () => {
    const paths = { change: join(folderOfTest(), 'change.json') }
    expect(await readChange(paths)).toBeUndefined()
    await writeChange(paths, note)
    expect(await readChange(paths)).toEqual(note)
    for (const text of ['', '{}', JSON.stringify({ ...note, phase: 'other' })]) {
      writeFileSync(paths.change, text)
      expect(await readChange(paths)).toBe('damaged')
    }
  })

  it('of the version come before the manifest of the API server', async () => {
    const folder = folderOfTest()
    const paths = { version: join(folder, 'version.json') }
    expect(await readVersion(paths, folder)).toBeUndefined()
    writeFileSync(
      join(folder, 'kube-apiserver.yaml'),
      'spec:\n  containers:\n  - command: [a]\n    image: registry.k8s.io/kube-apiserver:v1.33.13\n    name: a\n',
    )
    expect(await readVersion(paths, folder)).toBe('1.33.13')
    await writeVersion(paths, '1.34.4')
    expect(JSON.parse(readFileSync(paths.version, 'utf8'))).toEqual({ version: '1.34.4' })
    expect(await readVersion(paths, folder)).toBe('1.34.4')
  })

  it('an image of another name says no version', () => {
    expect(versionInManifest('    image: registry.k8s.io/etcd:3.6.5-0\n')).toBeUndefined()
    expect(versionInManifest('    image: mirror.example:5000/k8s/kube-apiserver:v1.34.4\n')).toBe('1.34.4')
  })
})

describe('the room for an upgrade', () => {
  const need = (neededBytes: number, freeBytes: number) => ({ folder: '/data', neededBytes, freeBytes })
  it('is enough with 256 MiB to spare', () => {
    expect(lackOfRoom([need(100 * mib, 356 * mib)])).toBeUndefined()
    expect(lackOfRoom([need(0, 1_000 * mib), need(100 * mib, 356 * mib - 1)])).toBe(
      'the file system of /data has 356 MiB free, and an upgrade that can be taken back needs 100 MiB there, and 256 MiB for everything else; make room, then apply the change again',
    )
  })

  it('is counted by file system, also of folders that are not there yet', async () => {
    const folder = folderOfTest()
    const [only, ...more] = await roomNeeds([
      [join(folder, 'copies/1'), 3],
      [folder, 4],
    ])
    expect([only?.folder, only?.neededBytes, more]).toEqual([join(folder, 'copies/1'), 7, []])
    expect(only?.freeBytes).toBeGreaterThan(0)
  })
})
