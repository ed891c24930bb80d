import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { annotations, artifactTypes, mediaTypes } from '../../content/format/media-types.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine } from '../../ctl/layout.ts'
import {
  descriptorOf,
  makeArtifact,
  makeDocument,
  type Artifact,
  type ArtifactBlob,
  compareTexts,
  readFileBlob,
  unreadable,
  checkName,
  referenceOf,
  splitNamed,
  type Part,
} from './part.ts'

/** Architectures by the names of Go, which images and folders of programs use. */
const architectures: ReadonlySet<string> = new Set([
  ...['386', 'amd64', 'arm', 'arm64', 'loong64', 'ppc64', 'ppc64le', 'riscv64', 's390x'],
])

// e_machine of elf(5): <elf.h>. Machines with two byte orders are distinguished below.
const machines: Readonly<Record<number, string>> = {
  3: '386',
  21: 'ppc64',
  22: 's390x',
  40: 'arm',
  62: 'amd64',
  183: 'arm64',
  243: 'riscv64',
  258: 'loong64',
}

const magic = Buffer.from([0x7f, 0x45, 0x4c, 0x46])

/**
 * The architecture of a program.
 * @param start its first 20 bytes
 * @returns the name of Go, `machine N` for one that is not known, undefined if it is no ELF file
 */
function elfArchitecture(start: Buffer): string | undefined {
  if (start.length < 20 || !start.subarray(0, 4).equals(magic)) return undefined
  const isLittle = start[5] === 1
  const machine = isLittle ? start.readUInt16LE(18) : start.readUInt16BE(18)
  const name = machines[machine]
  return name === 'ppc64' && isLittle ? 'ppc64le' : (name ?? `machine ${machine}`)
}

/** A file of a program. */
interface ProgramFile {
  /** Name below the folder of its architecture. */
  readonly name: string
  readonly path: string
  readonly isExecutable: boolean
}

/** The folder of `--programs NAME=VERSION:DIR`. */
export function splitPrograms(value: string): { name: string; version: string; folder: string } {
  const place = `--programs ${value}`
  const { name, path } = splitNamed(place, value, 'NAME=VERSION:DIR')
  const colon = path.indexOf(':')
  const [version, folder] = [path.slice(0, Math.max(colon, 0)), path.slice(colon + 1)]
  if (version === '' || folder === '')
    throw new Failure('usage', `${place} must be written as NAME=VERSION:DIR`)
  checkName(place, 'the name', name)
  if (!/^[\w.+-]{1,128}$/.test(version))
    throw new Failure(
      'usage',
      `${place}: the version ${oneLine(version)} must consist of letters, digits, ., _, + and -`,
    )
  return { name, version, folder }
}

/**
 * `--programs NAME=VERSION:DIR`: an artifact for each architecture, with a layer for each file, below one index. The
 * files of an architecture are in DIR/ARCHITECTURE, files for all beside these folders. A folder without such folders
 * has files for all architectures, and gives one artifact.
 * @param onRead called with the number of bytes of each chunk that was read
 * @throws Failure that names the option, the file and the reason
 */
export async function readProgramsPart(value: string, onRead: (bytes: number) => void): Promise<Part> {
  const place = `--programs ${value}`
  const { name, version, folder } = splitPrograms(value)
  const titled = { [annotations.title]: name, [annotations.version]: version }
  const entryAnnotations = { ...titled, [annotations.refName]: referenceOf(name, version) }
  const { common, own } = await listPrograms(folder, place)
  const make = async (
    files: readonly ProgramFile[],
    given: Readonly<Record<string, string>>,
  ): Promise<Artifact> => {
    const layers: ArtifactBlob[] = []
    for (const file of [...files].sort((one, other) => compareTexts(one.name, other.name)))
      layers.push(await layerOf(file, place, onRead))
    const artifactType = artifactTypes.program
    return makeArtifact({ artifactType, layers, annotations: titled, entryAnnotations: given, place })
  }
  if (own.size === 0) {
    const { entry, blobs } = await make(common, entryAnnotations)
    return { place, entries: [entry], blobs }
  }
  const children = []
  const blobs = []
  for (const [architecture, files] of own) {
    const artifact = await make([...common, ...files], {})
    children.push({ ...artifact.entry, platform: { architecture, os: 'linux' } })
    blobs.push(...artifact.blobs)
  }
  const index = makeDocument(place, {
    schemaVersion: 2,
    mediaType: mediaTypes.index,
    artifactType: artifactTypes.program,
    manifests: children,
    annotations: titled,
  })
  const entry = descriptorOf({ blob: index, mediaType: mediaTypes.index, annotations: entryAnnotations })
  return { place, entries: [{ ...entry, artifactType: artifactTypes.program }], blobs: [index, ...blobs] }
}

async function layerOf(
  file: ProgramFile,
  place: string,
  onRead: (bytes: number) => void,
): Promise<ArtifactBlob> {
  const { name, path, isExecutable } = file
  const blob = await readFileBlob({ path, place: `${place}, ${path}`, onRead })
  // The rest of the mode depends on the umask of the user who unpacked the files, and setuid has no place in a bundle.
  const mode = isExecutable ? '0755' : '0644'
  const given = { [annotations.title]: name, [annotations.fileMode]: mode }
  return { blob, mediaType: mediaTypes.fileContent, annotations: given }
}

/** The files for all architectures, and for each, by the name of Go for it. */
async function listPrograms(folder: string, place: string) {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    throw unreadable(place, error)
  })
  const own = new Map<string, readonly ProgramFile[]>()
  const isOwn = (name: string) => architectures.has(name)
  for (const { name } of entries.filter((entry) => entry.isDirectory() && isOwn(entry.name)))
    own.set(name, await listFiles(join(folder, name), place, name))
  const common = await listFiles(folder, place, undefined, isOwn)
  const sorted = new Map([...own].sort(([one], [other]) => compareTexts(one, other)))
  const empty = [...sorted].find(([, files]) => files.length === 0)
  if (empty) throw new Failure('failed', `${place}: the folder ${empty[0]} has no files`)
  if (common.length === 0 && own.size === 0) throw new Failure('failed', `${place} has no files`)
  for (const [architecture, files] of own) {
    const names = new Set(files.map(({ name }) => name))
    const twice = common.find(({ name }) => names.has(name))
    if (twice)
      throw new Failure(
        'failed',
        `${place} has ${oneLine(twice.name)} for all architectures and for ${architecture}; remove one of them`,
      )
  }
  return { common, own: sorted }
}

/**
 * Lists the files below a folder.
 * @param architecture that they are for; undefined if for all
 */
async function listFiles(
  folder: string,
  place: string,
  architecture: string | undefined,
  isSkipped: (name: string) => boolean = () => false,
): Promise<ProgramFile[]> {
  const files: ProgramFile[] = []
  const walk = async (below: string): Promise<void> => {
    const entries = await readdir(join(folder, below), { withFileTypes: true }).catch((error: unknown) => {
      throw unreadable(`${place}, ${join(folder, below)}`, error)
    })
    for (const entry of entries) {
      const name = below === '' ? entry.name : `${below}/${entry.name}`
      if (below === '' && isSkipped(entry.name) && entry.isDirectory()) continue
      const path = join(folder, name)
      checkName(place, 'the file name', name)
      if (entry.isDirectory()) await walk(name)
      else if (entry.isFile())
        files.push({ name, path, isExecutable: await checkFile(path, place, architecture) })
      else
        throw new Failure(
          'failed',
          `${place}: ${oneLine(path)} is a ${entry.isSymbolicLink() ? 'link' : 'special file'}; only files and folders can be packed`,
        )
    }
  }
  await walk('')
  return files
}

/** @returns whether its owner may execute the file */
async function checkFile(path: string, place: string, architecture: string | undefined): Promise<boolean> {
  const file = await open(path).catch((error: unknown) => {
    throw unreadable(`${place}, ${path}`, error)
  })
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(20), 0, 20, 0)
    const found = elfArchitecture(buffer.subarray(0, bytesRead))
    if (found !== undefined && found !== architecture)
      throw new Failure(
        'failed',
        architecture === undefined
          ? `${place}: ${oneLine(path)} is a program for ${found}; put it into a folder ${found} of its own`
          : `${place}: ${oneLine(path)} is a program for ${found}, but is in the folder ${architecture}`,
      )
    return ((await file.stat()).mode & 0o100) !== 0
  } finally {
    await file.close()
  }
}
