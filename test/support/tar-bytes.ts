import { createHash } from 'node:crypto'
import { gzipSync, zstdCompressSync } from 'node:zlib'

// Tar by hand, POSIX.1-2024 pax(1), since tools do not write the archives that have to be refused.

/** A member as it is written to the archive, valid or not. */
export interface RawMember {
  /** Text, or bytes that are not text. */
  readonly name: string | Buffer
  readonly content?: string | Buffer
  /** `0` a file, `5` a folder, `x` records of pax, ... */
  readonly kind?: string
  readonly mode?: number
  readonly linkName?: string
  /** The size in the header, whatever the content is. */
  readonly size?: number
  readonly magic?: string
}

/** Header, content and padding of one member. */
export function rawMember({
  name,
  content = '',
  kind = '0',
  mode = 0o644,
  linkName = '',
  size,
  magic,
}: RawMember): Buffer {
  const bytes = Buffer.from(content as string)
  const header = Buffer.alloc(512)
  Buffer.from(name as string).copy(header, 0, 0, 100)
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')
  header.write(
    `${octal(mode, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size ?? bytes.length, 11)}\0${octal(0, 11)}\0`,
    100,
  )
  header.write(' '.repeat(8), 148)
  header.write(kind, 156, 'latin1')
  header.write(linkName, 157)
  header.write(magic ?? 'ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${octal(sum, 6)}\0 `, 148)
  return Buffer.concat([header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)])
}

/** A record of pax. */
export function paxRecord(key: string, value: string | Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value as string), Buffer.from('\n')])
  let length = rest.length + 1
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

/** A whole tar archive with its end. */
export const rawTar = (members: readonly RawMember[]): Buffer =>
  Buffer.concat([...members.map(rawMember), Buffer.alloc(1_024)])

export const compressions = {
  gzip: (bytes: Buffer): Buffer => gzipSync(bytes, { level: 1 }),
  zstd: (bytes: Buffer): Buffer => zstdCompressSync(bytes),
  /** Begins with a skippable frame that has the size of the next one: RFC 8878 3.1.2. */
  pzstd(bytes: Buffer): Buffer {
    const frame = zstdCompressSync(bytes)
    const skippable = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 0, 0, 0, 0])
    skippable.writeUInt32LE(frame.length, 8)
    return Buffer.concat([skippable, frame])
  },
}

export const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')

/** definition.yaml of files. */
function definitionYaml(files: Readonly<Record<string, string | Buffer>>): string {
  const lines = Object.entries(files).map(([name, content]) => `  ${sha256(content)}  ${name}\n`)
  const head =
    'formatVersion: 1\nname: factory\nversion: 1.0.0\nprofiles:\n  - uid: u1\n    name: one\n    version: 1.0.0\n'
  return `${head}sha256: |\n${lines.join('')}`
}

/** Files with a valid definition.yaml. */
export const signedMembers = (files: Readonly<Record<string, string | Buffer>>): RawMember[] => [
  ...Object.entries(files).map(([name, content]) => ({ name, content })),
  { name: 'definition.yaml', content: definitionYaml(files) },
]

/** A profile as the platform exports it, with some of it replaced. */
export const exportedProfile = (uid = 'u1', template: object = {}, spec: object = {}) => ({
  metadata: { name: `profile ${uid}`, uid, description: 'made for a test' },
  spec: {
    version: '1.0.0',
    template: {
      type: 'infra',
      cloudType: 'edge-native',
      packs: [
        {
          name: 'edge-k3s',
          layer: 'k8s',
          tag: '1.33.3',
          uid: 'p1',
          type: 'spectro',
          values: 'pack:\n  a: 1\n',
        },
      ],
      ...template,
    },
    ...spec,
  },
})
