import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

// Packs as public repositories have them: descriptor, values, charts packed and unpacked, manifests, a logo.
const manifestBytes = 256_000
const chartBytes = 60_000
const unpackedFiles = 24

/** The folders of so many packs, the same bytes on every machine; about half a megabyte each. */
export function writePacks(folder: string, count: number): string[] {
  const random = createRandom()
  return Array.from({ length: count }, (_, index) => {
    const name = `bench-${String(index).padStart(3, '0')}`
    const pack = join(folder, name)
    const write = (path: string, content: string | Buffer) => {
      mkdirSync(dirname(join(pack, path)), { recursive: true })
      writeFileSync(join(pack, path), content)
    }
    const descriptor = {
      ...{ name, version: '1.0.0', displayName: `Pack ${index}`, layer: 'addon', cloudTypes: ['all'] },
      ...{ charts: [`charts/${name}-1.0.0.tgz`], kubeManifests: ['manifests/all.yaml'] },
    }
    write('pack.json', JSON.stringify(descriptor, null, 2))
    write('values.yaml', text(random, 16_000))
    write('manifests/all.yaml', text(random, manifestBytes))
    write(`charts/${name}-1.0.0.tgz`, bytes(random, chartBytes))
    for (let file = 0; file < unpackedFiles; file += 1)
      write(`charts/${name}/templates/part-${file}.yaml`, text(random, 4_000))
    write('logo.png', bytes(random, 12_000))
    write('README.md', text(random, 6_000))
    return pack
  })
}

/** A profile that takes them all, as the platform exports it. */
export function writeProfile(file: string, packs: number): void {
  const profile = {
    metadata: { name: 'bench', uid: 'bench' },
    spec: {
      version: '1.0.0',
      template: {
        type: 'add-on',
        packs: Array.from({ length: packs }, (_, index) => ({
          ...{
            name: `bench-${String(index).padStart(3, '0')}`,
            tag: '1.0.0',
            layer: 'addon',
            type: 'spectro',
          },
          values: 'pack:\n  namespace: bench\n',
        })),
      },
    },
  }
  writeFileSync(file, JSON.stringify(profile, null, 2))
}

const words =
  'apiVersion kind metadata name namespace labels spec template containers image ports resources limits memory cpu volumeMounts mountPath env value selector replicas'.split(
    ' ',
  )

/** YAML of words that come again and again with figures that do not: about 5 to 1, as manifests are. */
function text(random: () => number, length: number): string {
  const lines: string[] = []
  for (let size = 0; size < length;) {
    const word = words[random() % words.length] ?? ''
    const line = `${' '.repeat(2 * (random() % 5))}${word}: ${words[random() % words.length] ?? ''}-${(random() % 1e6).toString(36)}\n`
    lines.push(line)
    size += line.length
  }
  return lines.join('')
}

const bytes = (random: () => number, length: number): Buffer =>
  Buffer.from(
    Array.from({ length: length / 4 }, random).flatMap((n) => [
      n & 255,
      (n >> 8) & 255,
      (n >> 16) & 255,
      n >>> 24,
    ]),
  )

/** Xorshift, Marsaglia 2003. */
export function createRandom(): () => number {
  let state = 2_463_534_242
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>>= 0)
  }
}
