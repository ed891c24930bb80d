import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { planBuild } from '../src/definition/build/build-plan.ts'
import { buildArchive } from '../src/definition/build/build.ts'
import { withDefaults } from '../src/archive/limits.ts'
import type { Variable } from '../src/definition/definition.ts'
import { manifests } from './manifests.ts'
import { createRandom } from './packs.ts'

const valuesBytes = 16_000
const logoBytes = 12_000
const pngStart = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

export interface TextDefinition {
  readonly packCount: number
  /** Of the manifests of all packs. */
  readonly manifestBytes: number
  /** Each is used once, by the values of a pack. */
  readonly variables: readonly Variable[]
}

/**
 * Builds a definition that is all text: values, manifests and a logo for each pack.
 * @returns path of the archive
 */
export async function buildTextDefinition(folder: string, wanted: TextDefinition): Promise<string> {
  const { packCount, manifestBytes, variables } = wanted
  const parts = join(folder, 'text-parts')
  const random = createRandom()
  try {
    const packs = Array.from({ length: packCount }, (_, index) => {
      const name = `bench-${String(index).padStart(3, '0')}`
      const write = (path: string, content: string | Buffer) => {
        const file = join(parts, name, path)
        mkdirSync(dirname(file), { recursive: true })
        writeFileSync(file, content)
      }
      const kubeManifests = ['manifests/all.yaml']
      write('pack.json', JSON.stringify({ name, version: '1.0.0', layer: 'addon', kubeManifests }))
      write('manifests/all.yaml', manifests(random, name, manifestBytes / packCount))
      write('logo.png', Buffer.concat([pngStart, Buffer.from(Array.from({ length: logoBytes }, random))]))
      const own = variables.filter((_each, number) => number % packCount === index)
      const values = valuesOf(random, own)
      write('values.yaml', values)
      return { folder: join(parts, name), entry: { name, tag: '1.0.0', layer: 'addon', values } }
    })
    const profile = join(parts, 'profile.json')
    const spec = {
      version: '1.0.0',
      template: { type: 'add-on', packs: packs.map(({ entry }) => entry) },
      variables,
    }
    writeFileSync(profile, JSON.stringify({ metadata: { name: 'bench', uid: 'bench' }, spec }, null, 2))
    const folders = packs.map((pack) => pack.folder)
    const plan = planBuild({ profiles: [profile], packs: folders, limits: withDefaults() })
    const [problem] = plan.problems
    if (problem) throw new Error(`${problem.place} ${problem.message}`)
    return (await buildArchive({ plan, file: join(folder, 'text.tgz') })).file
  } finally {
    rmSync(parts, { recursive: true, force: true })
  }
}

const typed = new Set<string | undefined>(['number', 'boolean'])

/** Values as charts have them: short keys, many comments. */
function valuesOf(random: () => number, variables: readonly Variable[]): string {
  const lines = ['pack:', '  namespace: bench', 'site:']
  for (const { name, format } of variables) {
    const macro = `{{ .spectro.var.${name} }}`
    lines.push(`  ${name.replaceAll('.', '-')}: ${typed.has(format) ? macro : `"${macro}"`}`)
  }
  lines.push('chart:')
  for (let size = 0, index = 0; size < valuesBytes; index += 1) {
    const section = [
      `  # -- How many of section ${index} run at the same time, and what each of them may take.`,
      `  section${index}:`,
      `    enabled: ${random() % 2 === 0}`,
      `    replicas: ${random() % 5}`,
      `    image: { repository: registry.example.com/bench/part-${index}, tag: v1.${random() % 30}.0 }`,
      '    resources:',
      `      limits: { cpu: ${random() % 900}m, memory: ${random() % 900}Mi }`,
      `    nodeSelector: { kubernetes.io/os: "linux" }`,
    ]
    lines.push(...section)
    size += section.join('\n').length + 1
  }
  return `${lines.join('\n')}\n`
}
