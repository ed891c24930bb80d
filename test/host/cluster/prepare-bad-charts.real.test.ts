import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { chartArchive, deployment } from '../../support/cluster-definitions.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { prepareBench } from '../../support/prepare-bench.ts'
import { rawTar, type RawMember } from '../../support/tar-bytes.ts'
import { noise } from '../../support/random.ts'

const { prepareAddOns } = prepareBench()
const about = (more: string) => `apiVersion: v2\nname: web\nversion: 1.0.0\n${more}\n`
const aboutV1 = 'apiVersion: v1\nname: web\nversion: 1.0.0\n'
const chart = (files: Readonly<Record<string, string>>) => chartArchive('web', files)
const template = (text: string) => chart({ 'templates/a.yaml': text })
const members = (...more: RawMember[]) =>
  gzipSync(rawTar([{ name: 'web/Chart.yaml', content: about('') }, ...more]))
const database = (repository: string) =>
  `dependencies: [{name: db, version: 1.0.0, repository: "${repository}"}]`
const portSchema = '{"required": ["port"], "properties": {"port": {"type": "integer"}}}'
const job = (hook: string) =>
  `apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: hook\n  annotations: {helm.sh/hook: ${hook}, helm.sh/hook-delete-policy: hook-succeeded}\nspec:\n  template:\n    spec:\n      containers: [{name: a, image: "hook.local/job:1"}]\n`
const definition =
  'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tills.shop.example}\n'

const prepare = (archive: Buffer) => prepareAddOns([{ name: 'web', files: { 'charts/web.tgz': archive } }])

describe.skipIf(isKitMissing())(
  'a chart that cannot be installed is refused with its pack, its name and the place',
  () => {
    it.each<[string, Buffer, string]>([
      [
        'a dependency that is not inside',
        chart({ 'Chart.yaml': about(database('https://charts.example')) }),
        'missing in charts/ directory: db',
      ],
      [
        'a dependency in an OCI registry',
        chart({ 'Chart.yaml': about(database('oci://registry.example/charts')) }),
        'missing in charts/ directory: db',
      ],
      [
        'a dependency of a chart of apiVersion v1',
        chart({ 'Chart.yaml': aboutV1, 'requirements.yaml': database('https://charts.example') }),
        'missing in charts/ directory: db',
      ],
      ['a template that fails', template('a: 1\nb: {{ .Values.x.y }}\n'), 'web/templates/a.yaml:2:13'],
      [
        'a template that does not end',
        template('a: 1\n{{ if true }}\n'),
        '(web/templates/a.yaml:3): unexpected EOF',
      ],
      [
        'a function that helm does not know',
        template('a: {{ cook 1 }}'),
        '(web/templates/a.yaml:1): function "cook" not',
      ],
      [
        'a required value',
        template('a: 1\nb: {{ required "name the host" .Values.host }}'),
        '(web/templates/a.yaml:2:6): name the host',
      ],
      [
        'a template that includes itself',
        template('{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}'),
        'web/templates/a.yaml:1:47',
      ],
      [
        'a field of what lookup finds in no cluster',
        template('{{ $found := lookup "v1" "Secret" "a" "b" }}\na: {{ $found.data.password }}'),
        'web/templates/a.yaml:2:',
      ],
      [
        'a version of Kubernetes that a template asks for',
        template(
          '{{ if semverCompare "<1.40" .Capabilities.KubeVersion.Version }}{{ fail "needs 1.40" }}{{ end }}',
        ),
        'a.yaml:1:67): needs 1.40',
      ],
      [
        'a kind that a template asks for',
        template(
          '{{ if not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") }}{{ fail "needs monitors" }}{{ end }}',
        ),
        'needs monitors',
      ],
      [
        'notes that fail',
        chart({ 'templates/NOTES.txt': '{{ fail "no notes" }}' }),
        '(web/templates/NOTES.txt:1:3): no notes',
      ],
      [
        'a value that its schema asks for',
        chart({ 'values.schema.json': portSchema }),
        "missing property 'port'",
      ],
      [
        'a value of another type than in its schema',
        chart({ 'values.yaml': 'port: http', 'values.schema.json': portSchema }),
        "at '/port': got string, want integer",
      ],
      ['a schema that is no JSON', chart({ 'values.schema.json': '{"required":' }), 'unexpected EOF'],
      ['values that are no YAML', chart({ 'values.yaml': 'a: [' }), 'cannot load values.yaml'],
      [
        'an invalid version',
        chart({ 'Chart.yaml': 'apiVersion: v2\nname: web\nversion: one\n' }),
        'version "one" is invalid',
      ],
      [
        'a version of Kubernetes that it does not want',
        chart({ 'Chart.yaml': about('kubeVersion: ">=1.40.0"') }),
        'kubeVersion: >=1.40.0 which is incompatible with Kubernetes v1.34.4',
      ],
      ['a library', chart({ 'Chart.yaml': about('type: library') }), 'library charts are not installable'],
      [
        'rendered text that is no YAML',
        template('a: 1\n  b: 2\n'),
        'web/templates/a.yaml: error converting YAML to JSON: yaml: line 2',
      ],
      [
        'a rendered object without a kind',
        template('metadata: {name: a}\n---\napiVersion: v1\nmetadata: {name: b}\n'),
        'has in web/templates/a.yaml an object without',
      ],
      [
        'a definition of crds/ that is no YAML',
        chart({ 'crds/a.yaml': `${definition}spec: [` }),
        'has web/crds/a.yaml, which is not valid YAML: line 5',
      ],
      [
        'a file that becomes too large when it is unpacked',
        chart({ 'templates/a.txt': 'a'.repeat(101 * 2 ** 20) }),
        'web/templates/a.txt has 105906176 bytes; 104857600 are allowed',
      ],
      [
        'a file that is too large for helm',
        chart({ 'files/a.txt': 'a'.repeat(6 * 2 ** 20) }),
        'web/files/a.txt" is larger than the maximum file size 5242880',
      ],
      [
        'files that are too large for the Secret of its release',
        chart({ 'files/a': noise(800_000).toString('base64') }),
        'is too large: helm keeps it with its rendered objects in one Secret',
      ],
      [
        'objects that are too large for the Secret of its release',
        template(
          `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: "{{ range until 60000 }}{{ sha256sum (print .) }}{{ end }}"}\n`,
        ),
        'is too large: helm keeps it with its rendered objects in one Secret',
      ],
      [
        'a link out of it',
        members({ name: 'web/templates/a.yaml', kind: '2', linkName: '/etc/shadow' }),
        'web/templates/a.yaml is a symbolic link',
      ],
      [
        'a hard link out of it',
        members({ name: 'web/templates/a.yaml', kind: '1', linkName: '../../etc/shadow' }),
        'web/templates/a.yaml is a',
      ],
      [
        'a file outside of it',
        members({ name: 'web/../../a.yaml', content: 'a: 1' }),
        'web/../../a.yaml points out of the archive',
      ],
    ])('%s', async (_, archive, reason) => {
      const { problems } = await prepare(archive)
      expect(problems[0]).toMatchObject({ code: 'ChartInvalid', severity: 'error', pack: 'u1/web' })
      expect(problems[0]?.message).toMatch(
        /^pack u1\/web: chart packs\/web-1\.0\.0\/charts\/web\.tgz (cannot be|has|is) /,
      )
      expect(problems[0]?.message).toContain(reason)
    })
  },
)

describe.skipIf(isKitMissing())('a chart that helm can install is taken, with its images', () => {
  it.each<[string, Buffer, readonly string[]]>([
    [
      'of apiVersion v1',
      chart({ 'Chart.yaml': aboutV1, 'templates/a.yaml': deployment('v1.local/a:1') }),
      ['v1.local/a:1'],
    ],
    [
      'with a folder crds/',
      chart({ 'crds/a.yaml': definition, 'templates/a.yaml': deployment('a:1') }),
      ['a:1'],
    ],
    [
      'with hooks',
      chart({ 'templates/a.yaml': job('pre-install'), 'templates/b.yaml': job('post-install') }),
      ['hook.local/job:1'],
    ],
    ['without what only its tests need', template(job('test')), []],
    [
      'with what lookup does not find',
      template(
        `{{ $found := lookup "v1" "Secret" "a" "b" }}\n${deployment('{{ if $found }}x:1{{ else }}lookup.local/none:1{{ end }}')}`,
      ),
      ['lookup.local/none:1'],
    ],
    [
      'for this version of Kubernetes',
      chart({
        'Chart.yaml': about('kubeVersion: ">=1.30.0-0"'),
        'templates/a.yaml':
          '{{ if semverCompare ">=1.34" .Capabilities.KubeVersion.Version }}\n' +
          deployment('new.local/a:1') +
          '{{ end }}',
      }),
      ['new.local/a:1'],
    ],
    [
      'with objects in a list, in flow style, and with empty documents',
      template(
        `---\n# nothing\n---\n{"apiVersion": "v1", "kind": "List", "items": []}\n---\n${deployment('a:1')}`,
      ),
      ['a:1'],
    ],
    [
      'with large files that are like each other',
      chart({ 'files/a.txt': 'all the same\n'.repeat(300_000) }),
      [],
    ],
  ])('%s', async (_, archive, images) => {
    const { problems, desired: wanted } = await prepare(archive)
    expect(problems).toEqual([])
    expect(wanted.packs[1]?.images).toEqual(images)
  })
})
