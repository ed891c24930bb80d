import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { exampleFiles } from '../../../src/authoring/example.ts'
import { createContentCtl, type ContentCtl } from '../../support/content-ctl.ts'

let ctl: ContentCtl
const at = (name: string) => ctl.at(name)
beforeEach(() => {
  ctl = createContentCtl()
})
afterEach(() => ctl.remove())

/** A command that has to succeed without a word on standard error. */
async function ok(...args: readonly string[]): Promise<string> {
  const ended = await ctl.run(['definition', ...args])
  expect(ended, ended.stderr).toMatchObject({ exitCode: 0 })
  return ended.stdout
}
const build = (...more: readonly string[]) =>
  ok(
    'build',
    '--profile',
    at('shop/profile.yaml'),
    '--pack',
    at('shop/packs'),
    '--output',
    at('shop.tgz'),
    ...more,
  )

describe('definition init', () => {
  it('writes an example that is built and valid as it is, without a warning', async () => {
    expect(await ok('init', at('shop'))).toMatch(/^ *Profile: shop 1\.0\.0, with Kubernetes 1\.34\.4$/m)
    expect(JSON.parse(await build('-o', 'json'))).toMatchObject({ name: 'shop', isValid: true, problems: [] })
    expect(JSON.parse(await ok('validate', at('shop.tgz'), '-o', 'json'))).toMatchObject({
      isValid: true,
      problems: [],
    })
    const { packs, variables } = JSON.parse(await ok('inspect', at('shop.tgz'), '-o', 'json')) as {
      packs: { name: string; layer: string; isIncluded: boolean }[]
      variables: { name: string; required: boolean }[]
    }
    expect(packs.map(({ name, layer, isIncluded }) => [name, layer, isIncluded])).toEqual([
      ['edge-native-byoi', 'os', true],
      ['edge-k8s', 'k8s', true],
      ['cni-bridge', 'cni', true],
      ['notice', 'addon', true],
      ['web', 'addon', true],
    ])
    expect(variables.map(({ name }) => name)).toEqual(['greeting', 'token'])
  })

  it('says in two lines of each file what it is for', () => {
    for (const [path, text] of exampleFiles({ name: 'shop', kubernetes: '1.34.4' })) {
      if (path.endsWith('.json')) {
        const { description } = JSON.parse(text) as { description: string[] }
        expect(description, path).toHaveLength(2)
      } else
        expect(
          text.split('\n').findIndex((line) => !line.startsWith('# ')),
          path,
        ).toBe(2)
      for (const line of text.split('\n')) expect(line.length, line).toBeLessThanOrEqual(140)
    }
  })

  it('takes a name and a version of Kubernetes, and an empty folder', async () => {
    mkdirSync(at('shop'))
    await ok('init', at('shop'), '--name', 'till', '--kubernetes', '1.33.13')
    expect(readdirSync(at('shop/packs'))).toContain('edge-k8s-1.33.13')
    expect(JSON.parse(await build('-o', 'json'))).toMatchObject({ name: 'till', isValid: true, problems: [] })
  })

  it.each([
    ['a folder that is not empty', ['full'], 1, 'full is not empty; name a folder that is not there yet'],
    ['a file', ['file'], 1, 'file is not a folder'],
    ['a folder in one that is missing', ['none/shop'], 1, 'none/shop cannot be written'],
    ['a name that is none of a profile', ['Shop_1'], 2, 'the name of the folder, Shop_1, cannot be the name'],
    ['such an option', ['new', '--name', 'a b'], 2, '--name a b cannot be the name'],
    ['a version that is none', ['new', '--kubernetes', 'v1.34'], 2, '--kubernetes v1.34 must be a version'],
    ['a version that kubeadm is too old for', ['new', '--kubernetes', '1.30.0'], 2, 'is not supported'],
  ])('refuses %s, and writes nothing', async (_what, [folder = '', ...options], exitCode, message) => {
    mkdirSync(at('full'))
    writeFileSync(at('full/mine'), 'mine')
    writeFileSync(at('file'), 'mine')
    const before = readdirSync(ctl.home).sort()
    const ended = await ctl.run(['definition', 'init', at(folder), ...options])
    expect(ended, ended.stderr).toMatchObject({ exitCode, stdout: '' })
    expect(ended.stderr).toContain(message)
    expect(readdirSync(ctl.home).sort()).toEqual(before)
    expect(readdirSync(at('full'))).toEqual(['mine'])
    expect(readFileSync(at('file'), 'utf8')).toBe('mine')
  })
})

describe('definition needs of the example', () => {
  beforeEach(async () => {
    await ok('init', at('shop'))
    await build()
  })
  interface Needs {
    readonly needs: readonly Readonly<Record<string, unknown> & { kind: string; name: string }>[]
  }

  it('are its images, those of Kubernetes, and the programs', async () => {
    const { needs } = JSON.parse(await ok('needs', at('shop.tgz'), '-o', 'json')) as Needs
    expect(needs.filter(({ kind }) => kind === 'image').map(({ name }) => name)).toEqual([
      'registry.k8s.io/kube-apiserver:v1.34.4',
      'registry.k8s.io/kube-controller-manager:v1.34.4',
      'registry.k8s.io/kube-scheduler:v1.34.4',
      'registry.k8s.io/kube-proxy:v1.34.4',
      'registry.k8s.io/coredns/coredns:v1.12.1',
      'registry.k8s.io/pause:3.10.1',
      'registry.k8s.io/etcd:3.6.5-0',
      'docker.io/library/busybox:1',
    ])
    expect(needs.at(7)).toEqual({
      kind: 'image',
      name: 'docker.io/library/busybox:1',
      origin: 'cni-bridge, web',
      isRequired: true,
    })
    expect(needs.filter(({ kind }) => kind === 'program')).toMatchObject([
      ...['kubeadm', 'kubelet', 'kubectl'].map((name) => ({ name, version: '1.34.4', origin: 'Kubernetes' })),
      { name: 'helm', origin: 'notice, web', isRequired: true },
      { name: 'etcdctl', isRequired: false },
    ])
  })

  it('are listed for skopeo and for content build, a line each', async () => {
    const images = await ok('needs', at('shop.tgz'), '--list', 'image')
    expect(images).toMatch(/^(?:[^ \n]+\/[^ \n]+:[^ \n]+\n){8}$/)
    expect(await ok('needs', at('shop.tgz'), '--list', 'program')).toBe(
      'kubeadm=1.34.4\nkubelet=1.34.4\nkubectl=1.34.4\nhelm\netcdctl\n',
    )
    expect(await ok('needs', at('shop.tgz'), '--list', 'chart')).toBe('')
  })

  it('are known without tags for a version of Kubernetes that is not in the table, which is said', async () => {
    await ok('init', at('new'), '--kubernetes', '1.34.99')
    await ok(
      'build',
      '--profile',
      at('new/profile.yaml'),
      '--pack',
      at('new/packs'),
      '--output',
      at('new.tgz'),
    )
    expect(await ok('needs', at('new.tgz'))).toMatch(
      /registry\.k8s\.io\/etcd +Kubernetes +tag not known; add its kubeadm/,
    )
    const ended = await ctl.run(['definition', 'needs', at('new.tgz'), '--list', 'image'])
    expect(ended.stdout).not.toContain('etcd')
    expect(ended.stderr).toContain('left out: registry.k8s.io/etcd: tag not known; add its kubeadm')
  })

  it('are looked for in bundles, also in one that has the definition itself', async () => {
    mkdirSync(at('kubeadm/amd64'), { recursive: true })
    writeFileSync(join(at('kubeadm/amd64'), 'kubeadm'), 'a program', { mode: 0o755 })
    await ctl.built(
      ...['--programs', `kubeadm=1.34.4:${at('kubeadm')}`, '--definition', at('shop.tgz')],
      ...['--output', at('b.tar')],
    )
    for (const args of [[at('b.tar')], [at('shop.tgz'), '--content', at('b.tar')]]) {
      const { needs } = JSON.parse(await ok('needs', ...args, '-o', 'json')) as Needs
      const there = needs.filter(({ isThere }) => isThere === true)
      expect(there, args.join(' ')).toMatchObject([{ kind: 'program', name: 'kubeadm' }])
      expect(there[0]?.sizeBytes).toBeGreaterThan(8)
      expect(needs.filter(({ isThere }) => isThere === undefined)).toEqual([])
    }
    expect(await ok('needs', at('b.tar'))).toMatch(
      /^ *Content: not in the given bundles: 8 images, 3 programs$/m,
    )
  })

  it('cannot be told of what is no definition; the reason is said', async () => {
    writeFileSync(at('none.tgz'), 'no archive')
    await ctl.built('--file', `a=${at('none.tgz')}`, '--output', at('b.tar'))
    for (const [file, message] of [
      ['none.tgz', 'none.tgz'],
      ['missing.tgz', 'missing.tgz cannot be read'],
      ['b.tar', 'is a content bundle without a definition'],
    ] as const) {
      const ended = await ctl.run(['definition', 'needs', at(file)])
      expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
      expect(ended.stderr, file).toContain(message)
    }
  })
})
