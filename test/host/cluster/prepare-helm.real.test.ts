import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  chartArchive,
  clusterDefinition,
  deployment,
  infrastructure,
} from '../../support/cluster-definitions.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { objectsOf, prepareBench, toldProblems } from '../../support/prepare-bench.ts'

const bench = prepareBench()
const { prepareAddOns } = bench

const template = deployment('{{ .Values.image }}', '{{ .Release.Name }}')
const web = (version = '1.0.0') =>
  chartArchive(
    'web',
    { 'templates/web.yaml': template, 'values.yaml': 'image: registry.local/web:1\n' },
    version,
  )
const definitionOfTills = (scope: string) =>
  `apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tills.shop.example}\nspec:\n  group: shop.example\n  names: {kind: Till, plural: tills}\n  scope: ${scope}\n  versions: [{name: v1}]\n`

describe.skipIf(isKitMissing())('manifests that are templates', () => {
  it('are rendered over their values, with braces in variables as text', async () => {
    const manifest = `{{ if .Values.isOn }}\n${deployment('{{ .Values.image }}')}{{ end }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  note: '{{ .spectro.var.note }}'\n`
    const prepared = await prepareAddOns(
      [
        {
          name: 'web',
          values: 'manifests:\n  web:\n    image: registry.local/web:2\n    isOn: true\n',
          files: { 'manifests/web.yaml': manifest },
        },
      ],
      [{ name: 'note', defaultValue: 'none' }],
      { request: { variables: [{ name: 'note', value: 'a {{ b }}' }] } },
    )
    expect(toldProblems(prepared)).toEqual([])
    await prepared.keep()
    expect(prepared.desired.packs[1]?.images).toEqual(['registry.local/web:2'])
    expect(objectsOf(prepared.desired, 'web')).toContainEqual(
      expect.objectContaining({ kind: 'ConfigMap', data: { note: 'a {{ b }}' } }),
    )
    expect(readdirSync(join(prepared.desired.folder, 'packs', '3'))).toEqual(['manifests'])
  })

  it('in a profile with braces for another reader stay as they are', async () => {
    const alert = 'high on {{ $labels.instance }}: {{ printf "%.2f" $value }}'
    const content = `apiVersion: monitoring.example/v1\nkind: Rule\nmetadata: {name: a}\nalert: '${alert}'\nnote: '{{ .spectro.var.note }}'\n`
    const rules = definitionOfTills('Cluster')
      .replace('tills.shop.example', 'rules.monitoring.example')
      .replace('shop.example', 'monitoring.example')
      .replace('Till, plural: tills', 'Rule, plural: rules')
    const prepared = await prepareAddOns(
      [{ name: 'alerts', type: 'manifest', manifests: [{ name: 'a', content: `${content}---\n${rules}` }] }],
      [{ name: 'note', defaultValue: 'a {{ b }}' }],
    )
    expect(toldProblems(prepared)).toEqual([])
    await prepared.keep()
    expect(objectsOf(prepared.desired, 'alerts')).toMatchObject([{ alert, note: 'a {{ b }}' }, {}])
  })

  it.each([
    ['many objects', '{{- range until 400000000 }}{{- end }}'],
    ['one text', 'a: {{ repeat 1900000000 "a" | quote }}'],
  ])(
    'that would take all memory are an error of their pack that names the limit: %s',
    { timeout: 300_000 },
    async (_, content) => {
      const { problems } = await prepareAddOns([{ name: 'web', files: { 'manifests/web.yaml': content } }])
      expect(problems).toMatchObject([{ code: 'ManifestInvalid', severity: 'error', pack: 'u1/web' }])
      expect(problems[0]?.message).toContain(
        'cannot be rendered: helm needs more memory than a program may take here, the limit of 2048 MiB',
      )
    },
  )

  it.each([
    ['a template that does not end', '{{ if .Values.a }}', 'unexpected EOF'],
    ['a value that is required', 'a: {{ required "name the host" .Values.host }}', 'name the host'],
    ['what is not YAML after rendering', '{{ "kind: [" }}', 'error converting YAML to JSON'],
    ['an object without a name', 'kind: {{ "Secret" }}\napiVersion: v1\n', 'without metadata.name'],
  ])('are errors with the reason of helm: %s', async (_, content, reason) => {
    const { problems, desired: wanted } = await prepareAddOns([
      { name: 'web', files: { 'manifests/web.yaml': content } },
    ])
    expect(problems).toMatchObject([
      {
        code: 'ManifestInvalid',
        severity: 'error',
        pack: 'u1/web',
        message: expect.stringContaining(reason) as string,
      },
    ])
    expect(wanted.packs[1]?.manifests).toEqual([])
  })

  it('that pack.json does not name are not installed', async () => {
    const files = { 'manifests/a.yaml': deployment('a:1'), 'manifests/test.yaml': deployment('b:1') }
    const { desired: wanted } = await prepareAddOns([
      { name: 'web', files, about: { kubeManifests: ['manifests/a.yaml'] } },
      { name: 'all', files },
    ])
    expect(wanted.packs.map(({ manifests, images }) => [manifests.map(({ name }) => name), images])).toEqual([
      [[], []],
      [['a'], ['a:1']],
      [
        ['a', 'test'],
        ['a:1', 'b:1'],
      ],
    ])
  })
})

describe.skipIf(isKitMissing())('charts', () => {
  it('are taken out of the definition with their values, and rendered for their images', async () => {
    const values =
      'pack:\n  namespace: shop\n  content:\n    images: [{image: "registry.local/listed:1"}]\ncharts:\n  web:\n    image: "registry.local/web:{{ .spectro.var.tag }}"\n'
    const prepared = await prepareAddOns(
      [{ name: 'shop', values, files: { 'charts/web-1.0.0.tgz': web() } }],
      [{ name: 'tag', isSensitive: true, defaultValue: 'v7-secret' }],
    )
    expect(toldProblems(prepared)).toEqual([])
    await prepared.keep()
    const { folder, packs } = prepared.desired
    const [chart] = packs[1]?.charts ?? []
    expect(chart).toMatchObject({ name: 'web', version: '1.0.0', release: 'shop-web', namespace: 'shop' })
    expect(packs[1]?.images).toEqual(['registry.local/listed:1', 'registry.local/web:v7-secret'])
    expect(readFileSync(join(folder, chart?.file ?? ''))).toEqual(web())
    const valuesFile = join(folder, chart?.valuesFile ?? '')
    const sumOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
    expect([chart?.sum, chart?.valuesSum]).toEqual([sumOf(web()), sumOf(readFileSync(valuesFile))])
    expect(JSON.parse(readFileSync(valuesFile, 'utf8'))).toEqual({ image: 'registry.local/web:v7-secret' })
    expect(statSync(valuesFile).mode & 0o777).toBe(0o600)
    expect(existsSync(join(folder, 'content'))).toBe(false)
  })

  it('only those that pack.json names are installed; a folder that it names is packed', async () => {
    const folder = {
      'charts/till/Chart.yaml': 'apiVersion: v2\nname: till\nversion: 2.0.0\n',
      'charts/till/values.yaml': 'image: registry.local/till:1\n',
      'charts/till/templates/till.yaml': template,
    }
    const files = { 'charts/web-1.0.0.tgz': web(), 'charts/web-0.9.0.tgz': web('0.9.0'), ...folder }
    const about = { charts: ['charts/web-1.0.0.tgz', 'charts/till'] }
    const { desired: wanted, problems } = await prepareAddOns([{ name: 'shop', files, about }])
    expect(problems).toEqual([])
    expect(wanted.packs[1]?.charts.map(({ name, version }) => `${name} ${version}`)).toEqual([
      ...['web 1.0.0', 'till 2.0.0'],
    ])
    expect(wanted.packs[1]?.images).toEqual(['registry.local/till:1', 'registry.local/web:1'])
  })

  it('of a pack without a folder come from the content, once they are asked for', async () => {
    const file = join(bench.folder, '..', 'chart.tgz')
    writeFileSync(file, web())
    const asked: string[] = []
    const findChart = (reference: string) => {
      asked.push(reference)
      return Promise.resolve(reference === 'gone:1.0.0' ? undefined : { digest: 'sha256:chart', path: file })
    }
    const listed =
      'pack:\n  content:\n    charts: [{name: web, version: 1.0.0, repo: x}]\ncharts: {web: {image: "a:1"}}\n'
    const prepared = await prepareAddOns(
      [
        { name: 'listed', type: 'spectro', values: listed },
        { name: 'web', type: 'helm', values: 'pack: {namespace: own}\nimage: b:1\n' },
        { name: 'gone', type: 'oci' },
      ],
      [],
      { options: { content: { findChart } } },
    )
    expect(asked).toEqual(['web:1.0.0', 'gone:1.0.0'])
    expect(prepared.chartDigests).toEqual(['sha256:chart'])
    expect(toldProblems(prepared)).toEqual([
      'error ChartMissing pack u1/gone: chart gone:1.0.0 is neither in the definition nor in a whole content bundle of this host',
    ])
    expect(prepared.desired.packs.slice(1).map(({ images, charts }) => [images, charts.length])).toEqual([
      [['a:1'], 1],
      [['b:1'], 1],
      [[], 0],
    ])
  })

  it('may need the kinds that an earlier pack adds', async () => {
    const check = `{{ if not (.Capabilities.APIVersions.Has "shop.example/v1/Till") }}{{ fail "install the tills first" }}{{ end }}`
    const user = {
      name: 'user',
      files: { 'charts/user.tgz': chartArchive('user', { 'templates/a.yaml': check }) },
    }
    const values = 'pack: {spectrocloud.com/install-priority: "-1"}\n'
    const alone = await prepareAddOns([user])
    expect(toldProblems(alone)).toEqual([
      expect.stringMatching(/^error ChartInvalid .*install the tills first/),
    ])
    await alone.discard()
    for (const files of [
      { 'manifests/crd.yaml': definitionOfTills('Cluster') },
      { 'charts/tills.tgz': chartArchive('tills', { 'crds/till.yaml': definitionOfTills('Cluster') }) },
    ]) {
      const both = await prepareAddOns([user, { name: 'tills', values, files }])
      expect(toldProblems(both)).toEqual([])
      await both.discard()
    }
  })

  it('find the kinds that the manifests of their pack define, but those that they bring themselves', async () => {
    const crd = definitionOfTills('Cluster')
    const own = crd.replaceAll('till', 'shelf').replaceAll('Till', 'Shelf')
    const files = {
      'manifests/crds.yaml': `${crd}---\n${own}`,
      'charts/user.tgz': chartArchive('user', { 'templates/own.yaml': own }),
    }
    const prepared = await prepareAddOns([{ name: 'user', files }])
    expect(toldProblems(prepared)).toEqual([])
    expect(prepared.desired.packs[1]?.definitions).toEqual(['tills.shop.example'])
    await prepared.discard()
  })

  it.each([
    ['a file that is no archive', Buffer.from('no chart'), 'cannot be read'],
    ['an archive that is cut off', web().subarray(0, 150), 'cannot be read'],
    ['an archive without Chart.yaml', clusterDefinition(infrastructure), 'Chart.yaml is missing in it'],
    ['a template that fails', chartArchive('web', { 'templates/a.yaml': '{{ fail "no till" }}' }), 'no till'],
    [
      'a missing dependency',
      chartArchive('web', {}, '1.0.0\ndependencies: [{name: db, version: 1.0.0}]'),
      'missing in charts/ directory',
    ],
    [
      'values that its schema refuses',
      chartArchive('web', { 'values.schema.json': '{"required": ["port"]}' }),
      'port',
    ],
  ])('that cannot be installed are errors with the reason: %s', async (_, chart, reason) => {
    const { problems } = await prepareAddOns([{ name: 'web', files: { 'charts/web.tgz': chart } }])
    expect(problems).toMatchObject([
      {
        code: 'ChartInvalid',
        severity: 'error',
        pack: 'u1/web',
        message: expect.stringContaining(reason) as string,
      },
    ])
  })

  it('have the name of their release from the values; two of one name in a namespace, or a name that is too long, are errors', async () => {
    const files = { 'charts/web.tgz': web() }
    const named = (name: string, namespace: string) =>
      `pack: {namespace: ${namespace}, spectrocloud.com/display-name: ${name}}\n`
    const { desired: wanted, problems } = await prepareAddOns([
      { name: 'web', files, values: named('one', 'a') },
      { name: 'web', files, values: named('two', 'b') },
      { name: 'web', files, values: named('three', 'a') },
      { name: 'other', files, values: 'pack: {releaseNameOverride: {web: shop}}\n' },
      { name: `long-${'x'.repeat(50)}`, files },
    ])
    expect(
      wanted.packs
        .slice(1, 5)
        .flatMap(({ charts }) => charts.map(({ namespace, release }) => `${namespace}/${release}`)),
    ).toEqual([...['a/web-web', 'b/web-web', 'a/web-web', 'default/shop']])
    expect(problems).toMatchObject([
      {
        code: 'ReleaseTwice',
        pack: 'u1/web/three',
        message: expect.stringMatching(
          /another chart of the pack u1\/web\/one; .*pack\.releaseNameOverride\.web/,
        ) as string,
      },
      {
        code: 'ReleaseInvalid',
        pack: `u1/long-${'x'.repeat(50)}`,
        message: expect.stringContaining('at most 53') as string,
      },
    ])
  })

  it('and templates need helm; without one each pack that needs it is told', async () => {
    const { problems } = await prepareAddOns(
      [
        { name: 'chart', files: { 'charts/web.tgz': web() } },
        { name: 'template', type: 'manifest', manifests: [{ name: 'web', content: '{{ .Values.a }}' }] },
        { name: 'plain', type: 'manifest', manifests: [{ name: 'web', content: deployment('a:1') }] },
      ],
      [],
      { options: { helm: () => Promise.resolve(undefined) } },
    )
    expect(problems.map(({ code, pack }) => [code, pack])).toEqual([
      ['HelmMissing', 'u1/chart'],
      ['HelmMissing', 'u1/template'],
    ])
  })
})
