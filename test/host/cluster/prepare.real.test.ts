import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../../src/errors/app-error.ts'
import type { Prepared } from '../../../src/cluster/desired/prepared.ts'
import { stoppingError } from '../../../src/errors/stopping.ts'
import { clusterDefinition, deployment, infrastructure } from '../../support/cluster-definitions.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { objectsOf, prepareBench, toldProblems, type PrepareWish } from '../../support/prepare-bench.ts'
import { waitFor } from '../../support/wait-for.ts'

const bench = prepareBench()
const { prepareAddOns } = bench
/** The names of the images of each pack. */
const imagesOf = ({ needs }: Prepared) =>
  needs.map(({ pack, images }) => ({ pack, images: images.map(({ image }) => image) }))
const staged = () => readdirSync(join(bench.folder, 'staging'))

describe('the preparation of a cluster', () => {
  it('takes Kubernetes as it stays instead of that of the definition, also for macros, and warns of that', async () => {
    const kubernetes = { pack: 'edge-k8s', version: '1.35.0', config: 'clusterConfiguration: {}', stages: [] }
    const prepared = await prepareAddOns(
      [
        {
          name: 'web',
          files: {
            'manifests/web.yaml': deployment("'registry.local/web:{{ .spectro.system.kubernetes.version }}'"),
          },
        },
      ],
      [],
      { request: { kubernetes } },
    )
    expect(prepared.desired.kubernetes).toEqual(kubernetes)
    expect(prepared.desired.packs[1]?.images).toEqual(['registry.local/web:1.35.0'])
    expect(toldProblems(prepared)).toEqual([
      'warning KubernetesKept Kubernetes 1.35.0 stays as it is configured: the pack edge-k8s of this definition has 1.34.4, and its values are not applied; take a definition with Kubernetes 1.35.0 to change them',
    ])
    await prepared.keep()
    expect(JSON.parse(readFileSync(join(prepared.desired.folder, 'wanted.json'), 'utf8'))).toEqual(
      prepared.desired,
    )
  })

  it('names what macros have made of a secret, so that it is masked too', async () => {
    const values = "pack:\n  namespace: shop\ns: '{{ .spectro.var.secret }}'\n"
    const image = deployment("'up/{{ .spectro.pack.web.s | upper }}:1'")
    const prepared = await prepareAddOns(
      [{ name: 'web', values, files: { 'manifests/web.yaml': image } }],
      [{ name: 'secret', isSensitive: true, defaultValue: 'hostleakqzz9' }],
    )
    expect(imagesOf(prepared).flatMap(({ images }) => images)).toContain('up/HOSTLEAKQZZ9:1')
    expect(prepared.derived).toEqual(['HOSTLEAKQZZ9'])
  })

  it('resolves variables and macros in manifests, names their images, and writes JSON', async () => {
    const prepared = await prepareAddOns(
      [
        {
          name: 'web',
          values: "pack:\n  namespace: shop\nport: '{{ .spectro.var.port }}'\n",
          files: {
            'manifests/web.yaml': `${deployment("'registry.local/web:{{ .spectro.system.kubernetes.version | substr 0 4 }}'")}---\n---\nkind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\ndata:\n  port: '{{ .spectro.pack.web.port }}'\n  vip: "{{ .spectro.system.cluster.kubevip }}"\n  note: "x\n  y"\n`,
          },
        },
      ],
      [{ name: 'port', format: 'number', defaultValue: '80' }],
      { request: { variables: [{ name: 'port', value: '8080' }] } },
    )
    expect(toldProblems(prepared)).toEqual([])
    expect(prepared.variables).toEqual([
      { profileUid: 'u1', name: 'port', value: '8080', isSensitive: false },
    ])
    await prepared.keep()
    const { desired: wanted } = prepared
    expect(wanted.kubernetes).toEqual({ pack: 'edge-k8s', version: '1.34.4', config: '', stages: [] })
    expect(wanted.packs.map(({ id, order }) => [id, order])).toEqual([
      ['u1/cni', 0],
      ['u1/web', 1],
    ])
    expect(wanted.packs[1]?.images).toEqual(['registry.local/web:1.34'])
    expect(wanted.packs[1]?.namespaces).toEqual([{ name: 'shop', labels: {}, annotations: {} }])
    expect(objectsOf(wanted, 'web')).toMatchObject([
      { kind: 'Deployment' },
      { kind: 'ConfigMap', data: { port: '8080', vip: '10.0.0.9', note: 'x y' } },
    ])
    expect(JSON.parse(readFileSync(join(wanted.folder, 'wanted.json'), 'utf8'))).toEqual(wanted)
    expect(wanted.folder).toBe(join(bench.folder, 'c1', '1'))
    expect(readdirSync(wanted.folder).sort()).toEqual([
      'definition.spc',
      'details.json',
      'packs',
      'wanted.json',
    ])
    for (const name of [
      'wanted.json',
      'definition.spc',
      'details.json',
      wanted.packs[1]?.manifests[0]?.file ?? '',
    ])
      expect(statSync(join(wanted.folder, name)).mode & 0o777, name).toBe(0o600)
    expect(staged()).toEqual([])
  })

  it('has the text of kubeadm, with its macros, and what the stages would make', async () => {
    const values = [
      'cluster:',
      '  config: |',
      '    clusterConfiguration:',
      '      controlPlaneEndpoint: "{{ .spectro.system.cluster.kubevip }}"',
      'stages:',
      '  initramfs:',
      '    - files: [{path: /etc/kubernetes/audit-policy.yaml}]',
    ].join('\n')
    const packs = infrastructure.map((pack) =>
      pack.layer === 'k8s' ? { ...pack, tag: 'v1.34.4', values } : pack,
    )
    const { desired: wanted, problems } = await bench.prepare(clusterDefinition(packs))
    expect(problems).toEqual([])
    expect(wanted.kubernetes).toEqual({
      ...{ pack: 'edge-k8s', version: '1.34.4', stages: ['/etc/kubernetes/audit-policy.yaml'] },
      config: 'clusterConfiguration:\n  controlPlaneEndpoint: "10.0.0.9"\n',
    })
  })

  it('installs the manifests that a profile attaches to any pack, those of Kubernetes together with the CNI', async () => {
    const attached = (name: string) => [{ name, content: deployment(`registry.local/${name}:1`, name) }]
    const packs = infrastructure.map((pack) => ({ ...pack, manifests: attached(`at-${pack.layer}`) }))
    const add = { name: 'bare', type: 'manifest', manifests: attached('at-bare') }
    const prepared = await bench.prepare(clusterDefinition([...packs, add]))
    const { desired: wanted, problems } = prepared
    expect(problems).toEqual([])
    expect(
      wanted.packs.map(({ id, order, manifests }) => [id, order, manifests.map(({ name }) => name)]),
    ).toEqual([
      ['u1/edge-os', 0, ['at-os']],
      ['u1/edge-k8s', 0, ['at-k8s']],
      ['u1/cni', 0, ['at-cni']],
      ['u1/bare', 1, ['at-bare']],
    ])
    expect(imagesOf(prepared).map((each) => each.images)).toEqual([
      ...['os', 'k8s', 'cni', 'bare'].map((layer) => [`registry.local/at-${layer}:1`]),
    ])
  })

  it('names listed images, but not that of the operating system; a pack of the same profile twice has an id of its own', async () => {
    const listed = (image: string) => `pack:\n  content:\n    images: [{image: "${image}"}]\n`
    const packs = infrastructure.map((pack) => ({ ...pack, values: listed(`registry.local/${pack.name}:1`) }))
    const twice = { name: 'web', files: {}, values: listed('registry.local/web:1') }
    const prepared = await bench.prepare(
      clusterDefinition([
        ...packs,
        twice,
        { ...twice, annotations: { 'spectrocloud.com/display-name': 'web-2' } },
      ]),
    )
    expect(imagesOf(prepared)).toEqual([
      { pack: 'u1/edge-os', images: [] },
      { pack: 'u1/edge-k8s', images: ['registry.local/edge-k8s:1'] },
      { pack: 'u1/cni', images: ['registry.local/cni:1'] },
      { pack: 'u1/web', images: ['registry.local/web:1'] },
      { pack: 'u1/web/web-2', images: ['registry.local/web:1'] },
    ])
    expect(prepared.desired.packs.map(({ id }) => id)).toEqual(['u1/cni', 'u1/web', 'u1/web/web-2'])
  })

  it('a digest changes with what is applied and with nothing else', async () => {
    const digest = async (replicas: string, note: string) => {
      const values = `pack: {namespace: shop}\nnote: ${note}\n`
      const manifest = `${deployment('a:1')}  replicas: {{ .spectro.var.replicas }}\n`
      const { desired: wanted } = await prepareAddOns(
        [{ name: 'web', values, manifests: [{ name: 'web', content: manifest }], type: 'manifest' }],
        [{ name: 'replicas', format: 'number', defaultValue: '1' }],
        { request: { variables: [{ name: 'replicas', value: replicas }] } },
      )
      const [{ sum } = {}] = wanted.packs[1]?.manifests ?? []
      expect(sum).toMatch(/^[0-9a-f]{64}$/)
      return [wanted.packs[1]?.digest, sum]
    }
    const [first, firstSum] = await digest('1', 'a')
    expect(await digest('1', 'b')).toEqual([first, firstSum])
    const [other, otherSum] = await digest('2', 'a')
    expect([other === first, otherSum === firstSum]).toEqual([false, false])
  })
})

describe('what is wrong with a definition and its values', () => {
  it('is told all at once, each with its pack; values of sensitive variables are masked', async () => {
    const secret = 'hunter2:hunter2'
    const prepared = await prepareAddOns(
      [
        { name: 'bad', type: 'manifest', manifests: [{ name: 'a', content: 'kind: [\n' }] },
        {
          name: 'plain',
          type: 'manifest',
          values: 'pw: "{{ .spectro.var.pw }}"\npack: {namespace: Shop_1}\n',
          manifests: [{ name: 'b', content: 'kind: Secret\n' }],
        },
        { name: 'gone' },
      ],
      [
        { name: 'pw', isSensitive: true, required: true, regex: '^[0-9]+$' },
        { name: 'size', required: true, format: 'number' },
      ],
      {
        request: {
          variables: [
            { name: 'pw', value: secret },
            { name: 'other', value: '1' },
          ],
        },
      },
    )
    expect(prepared.problems).toMatchObject([
      {
        code: 'VariableInvalid',
        path: 'spec.profileVariables[0]',
        message: 'variable pw must match the regex ^[0-9]+$',
      },
      {
        code: 'VariableInvalid',
        path: 'spec.profileVariables[1]',
        message: expect.stringContaining('other is not declared') as string,
      },
      { code: 'VariableInvalid', path: 'spec.profileVariables', message: 'variable size is required' },
      {
        code: 'DefinitionProblem',
        pack: 'u1/bad',
        message: expect.stringMatching(/manifests\[0\]\.content:.*\(YamlInvalid\)$/) as string,
      },
      {
        code: 'ManifestInvalid',
        pack: 'u1/bad',
        message: expect.stringMatching(/^pack u1\/bad: manifest a is not valid YAML/) as string,
      },
      { code: 'NamespaceInvalid', pack: 'u1/plain' },
      {
        code: 'ManifestInvalid',
        pack: 'u1/plain',
        message: 'pack u1/plain: manifest b has object 1 without apiVersion',
      },
      {
        code: 'ChartMissing',
        pack: 'u1/gone',
        message: expect.stringContaining('is not in the definition') as string,
      },
    ])
    expect(JSON.stringify(prepared.problems)).not.toContain('hunter2')
  })

  it.skipIf(isKitMissing())(
    'a required variable without a value is told once, wherever it is used',
    async () => {
      const content = `${deployment('a:{{ .spectro.var.tag }}')}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '{{ .spectro.pack.web.tag }}', b: '{{ .Values.b }}'}\n`
      const values = "tag: '{{ .spectro.var.tag }}'\n"
      const { problems } = await prepareAddOns(
        [{ name: 'web', type: 'manifest', values, manifests: [{ name: 'a', content }] }],
        [{ name: 'tag', required: true }],
      )
      expect(problems).toEqual([
        {
          ...{ code: 'VariableInvalid', severity: 'error', path: 'spec.profileVariables' },
          message: 'variable tag is required',
        },
      ])
    },
  )

  it('a value of no name is told with its place', async () => {
    const request = { variables: [{ name: '', value: '1' }] }
    const { problems } = await prepareAddOns([], [{ name: 'tag' }], { request })
    expect(problems).toEqual([
      {
        ...{ code: 'VariableInvalid', severity: 'error', path: 'spec.profileVariables[0].name' },
        message: 'spec.profileVariables[0].name is missing: name the variable',
      },
    ])
  })

  it('a value that breaks the YAML around it is an error with its place', async () => {
    const { problems } = await prepareAddOns(
      [{ name: 'web', values: 'a: "{{ .spectro.var.a }}"\n', files: {} }],
      [{ name: 'a' }],
      { request: { variables: [{ name: 'a', value: 'x"y' }] } },
    )
    expect(problems).toMatchObject([
      {
        ...{ code: 'DefinitionProblem', severity: 'error', pack: 'u1/web' },
        message: expect.stringMatching(/packs\[3\]\.values:1:5: .*\(MacroBreaksYaml\)$/) as string,
      },
    ])
  })

  it('a definition without infrastructure, or with a Kubernetes of no version, is an error', async () => {
    const none = await bench.prepare(clusterDefinition([{ name: 'web', files: {} }]))
    expect(toldProblems(none)).toEqual([expect.stringContaining('error InfrastructureMissing')])
    const packs = infrastructure.map((pack) => (pack.layer === 'k8s' ? { ...pack, tag: '1.34.x' } : pack))
    const odd = await bench.prepare(clusterDefinition(packs))
    expect(toldProblems(odd)).toEqual([
      expect.stringContaining('error KubernetesVersionInvalid pack edge-k8s'),
    ])
  })
})

describe('the folder of a preparation', () => {
  it('is removed when it is discarded, and what a killed daemon left is removed at the start', async () => {
    mkdirSync(join(bench.folder, 'staging', 'left'), { recursive: true })
    const prepared = await prepareAddOns([])
    expect(staged()).toHaveLength(1)
    await prepared.discard()
    expect(readdirSync(bench.folder)).toEqual(['staging'])
    expect(staged()).toEqual([])
  })

  it('takes the place of one that was left without being accepted', async () => {
    const left = join(bench.folder, 'c1', '1')
    mkdirSync(left, { recursive: true })
    writeFileSync(join(left, 'left'), '')
    const prepared = await prepareAddOns([])
    await prepared.keep()
    expect(existsSync(join(left, 'left'))).toBe(false)
    await prepared.discard()
    expect(existsSync(join(left, 'wanted.json'))).toBe(true)
  })

  it.each<[string, PrepareWish, string]>([
    ['the archive is not the examined one', { slot: { sha256: 'x' } }, 'BadRequest'],
    ['the archive is gone', { slot: { file: '/nowhere' } }, 'BadRequest'],
    ['the disk is full', { options: { reserveBytes: 2 ** 60 } }, 'StorageFull'],
    ['it needs too much memory', { options: { check: { seconds: 60, memoryMiB: 1 } } }, 'ArchiveTooLarge'],
    ['the daemon stops', { options: { stopping: AbortSignal.abort() } }, 'NotReady'],
    ['its request ends', { signal: AbortSignal.abort(stoppingError()) }, 'NotReady'],
  ])('is removed if %s', async (_, wish, code) => {
    const error: unknown = await prepareAddOns([], [], wish).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code })
    expect(staged()).toEqual([])
  })

  it('is refused with the folder whose disk is full', async () => {
    const refused = prepareAddOns([], [], { options: { reserveBytes: 2 ** 60 } })
    await expect(refused).rejects.toThrow(
      new RegExp(`^the cluster cannot be prepared in ${bench.folder}: the disk lacks \\d+ bytes`),
    )
  })

  it.skipIf(isKitMissing())('is removed, and helm ends, if the request ends while helm runs', async () => {
    const ended = new AbortController()
    const loop = '{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}'
    const running = prepareAddOns([{ name: 'web', files: { 'manifests/web.yaml': loop } }], [], {
      signal: ended.signal,
    }).catch((reason: unknown) => reason)
    await waitFor(() => expect(helmsIn(bench.folder)).not.toEqual([]), { timeout: 60_000 })
    ended.abort(stoppingError())
    expect(await running).toMatchObject({ code: 'NotReady' })
    expect(staged()).toEqual([])
    await waitFor(() => expect(helmsIn(bench.folder)).toEqual([]), { timeout: 60_000 })
  })
})

/** Processes of this machine that render below a folder. */
const helmsIn = (folder: string) =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${folder}/staging`)
    } catch {
      return false
    }
  })
