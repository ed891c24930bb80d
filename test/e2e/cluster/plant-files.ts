import { link, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createContentCtl } from '../../support/content-ctl.ts'
import type { KubernetesKit } from '../../support/kubernetes-kit.ts'
import { output } from '../host/process.ts'
import { writePlant, type PlantWish } from './plant-definition.ts'

/** Programs that a host takes from its content, by the version that it asks for. */
const programsOf = (kit: KubernetesKit): Readonly<Record<string, string>> => ({
  ...{ kubeadm: kit.version, kubelet: kit.version, kubectl: kit.version },
  ...{ helm: '3.20.2', etcdctl: '3.6.5' },
})

/** Runs edgehostctl of this checkout on the test machine. */
async function ctl(...args: readonly string[]): Promise<void> {
  const { program, remove } = createContentCtl()
  try {
    await output(process.execPath, [program, ...args], { timeoutMs: 300_000 })
  } finally {
    remove()
  }
}

/** What a bundle leaves out. */
export interface BundleWish {
  /** Names of archives of images. */
  readonly withoutImages?: RegExp
  readonly withoutPrograms?: readonly string[]
  /** Archive of a definition that it brings along. */
  readonly definition?: string
}

/** Makes a content bundle with the images and programs of a Kubernetes version; takes about 3 s. */
export async function writeContent(
  kit: KubernetesKit,
  file: string,
  { withoutImages, withoutPrograms = [], definition }: BundleWish = {},
): Promise<void> {
  const images = await kit.images()
  const archives = (await readdir(images)).filter((each) => !withoutImages?.test(each))
  // Beside the programs, where hard links to them can be made.
  await withFolder(`${kit.programs}-plant-`, async (folder) => {
    const programs: string[] = []
    for (const [name, version] of Object.entries(programsOf(kit))) {
      if (withoutPrograms.includes(name)) continue
      await mkdir(join(folder, name, 'amd64'), { recursive: true })
      // Those of Kubernetes are links to one program.
      await link(await realpath(join(kit.programs, name)), join(folder, name, 'amd64', name))
      programs.push('--programs', `${name}=${version}:${join(folder, name)}`)
    }
    const chosen = archives.flatMap((each) => ['--image-archive', join(images, each)])
    const more = definition === undefined ? [] : ['--definition', definition]
    // The ending of the name decides the compression.
    const made = join(folder, 'content.tar')
    await ctl('content', 'build', ...chosen, ...programs, ...more, '--output', made)
    await output('mv', [made, file])
  })
}

/** Makes a definition. */
export async function writeDefinition(kit: KubernetesKit, file: string, wish?: PlantWish): Promise<void> {
  await withFolder(join(tmpdir(), 'plant-'), async (folder) => {
    const { profile, packs } = await writePlant(folder, kit, wish)
    const made = join(folder, 'definition.tgz')
    await ctl('definition', 'build', '--profile', profile, '--pack', packs, '--output', made)
    await output('mv', [made, file])
  })
}

/** A folder that is removed afterwards. */
async function withFolder(prefix: string, use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(prefix)
  try {
    await use(folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}
