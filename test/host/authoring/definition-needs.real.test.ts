import { writeFileSync } from 'node:fs'
import { delimiter } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  chartArchive,
  clusterDefinition,
  deployment,
  infrastructure,
} from '../../support/cluster-definitions.ts'
import { createContentCtl, type ContentCtl } from '../../support/content-ctl.ts'
import { isKitMissing, kit } from '../../support/kubernetes-kit.ts'

let ctl: ContentCtl
beforeEach(() => {
  ctl = createContentCtl()
})
afterEach(() => ctl.remove())

const chart = chartArchive('web', {
  'templates/web.yaml': deployment('{{ .Values.image.repository }}:{{ .Chart.Version }}'),
  'templates/clean.yaml': deployment('registry.local/clean:1').replace(
    'metadata: {name: web}',
    'metadata: {name: clean, annotations: {helm.sh/hook: post-delete}}',
  ),
})
const packs = [
  ...infrastructure,
  {
    name: 'shop',
    values: 'charts:\n  web:\n    image: {repository: registry.local/web}\n',
    files: { 'charts/web-1.0.0.tgz': chart },
  },
  {
    name: 'till',
    files: { 'manifests/till.yaml': deployment("'registry.local/till:{{ .spectro.var.tag }}'", 'till') },
  },
  { name: 'far', tag: '2.0.0', type: 'helm' },
]

/** The needs of the packs, with or without helm in PATH. */
async function needs(helm: string | undefined) {
  const file = ctl.at('definition.tgz')
  writeFileSync(file, clusterDefinition(packs, [{ name: 'tag', required: true }]))
  const env = helm === undefined ? {} : { PATH: ['/usr/bin', helm].join(delimiter) }
  const { stdout, stderr, exitCode } = await ctl.run(['definition', 'needs', file, '-o', 'json'], '', { env })
  expect(exitCode, stderr).toBe(0)
  const { needs: found } = JSON.parse(stdout) as {
    needs: { kind: string; name: string; origin: string; reason?: string }[]
  }
  const own = found.filter(({ origin, kind }) => origin !== 'Kubernetes' && kind !== 'program')
  return { stderr, lines: own.map(({ kind, name, origin, reason = '' }) => [kind, name, origin, reason]) }
}

const open = ['image', 'registry.local/till:…', 'till', 'not known: a variable in its name has no value']
const far = ['chart', 'far', 'far', '']

describe.skipIf(isKitMissing())('what a definition needs', () => {
  it('are with helm the images of the rendered charts, those of hooks with their reason', async () => {
    const found = await kit()
    const { lines, stderr } = await needs(found?.programs)
    expect(lines).toEqual([
      ['image', 'registry.local/clean:1', 'shop', 'only a hook of a chart uses it: post-delete'],
      ['image', 'registry.local/web:1.0.0', 'shop', ''],
      ...[open, far],
    ])
    expect(stderr).toBe(
      'Charts that are not in the definition are not rendered: their images are guessed from values.\n',
    )
  })

  it('are without helm guessed from values, which is said', async () => {
    const { lines, stderr } = await needs(undefined)
    expect(lines).toEqual([
      [
        ...['image', 'registry.local/web', 'shop'],
        'guessed from values, since its chart was not rendered; tag not known',
      ],
      ...[open, far],
    ])
    expect(stderr).toContain('There is no helm in PATH')
  })
})
