import { join } from 'node:path'
import { expect } from 'vitest'
import { askInside, type InsideReply } from './ask-inside.ts'
import { bootEdgehostd, type Edgehostd } from './edgehostd.ts'
import { eventually } from './eventually.ts'
import { writePlantImages, type PlantImages } from './plant-images.ts'
import { output } from './process.ts'

const right = 'registry canary 0811'
const uploadPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'

/** Address of the registry, as configured by default. */
export const registryAddress = '127.0.0.1:5081'

/** A booted host with images, and Debian's container runtimes to pull them. */
export interface RegistryHost {
  readonly host: Edgehostd
  readonly images: PlantImages
  /** Folder of their layout on the test machine. */
  readonly layout: string
  /** Uid of their bundle. */
  readonly uid: string
  /** Of an administrator. */
  readonly token: string
  /** The password of the registry. */
  readonly password: string
  /** Uploads a layout; returns the uid of its bundle. */
  upload(folder: string): Promise<string>
  /** Sets options of `content.registry`; returns when the registry listens. */
  configure(yaml: string): Promise<void>
  /** What edgehostd says of the registry. */
  show(): Promise<{ readonly isListening: boolean; readonly hosts: readonly string[] }>
  /** A request by curl on the host, with the password of the registry unless `args` have another one. */
  ask(path: string, ...args: readonly string[]): Promise<InsideReply>
}

export async function bootRegistryHost(): Promise<RegistryHost> {
  const host = await bootEdgehostd({ lower: 'machine' })
  try {
    return await prepare(host)
  } catch (error) {
    await host.unplug()
    throw error
  }
}

async function prepare(host: Edgehostd): Promise<RegistryHost> {
  // The runtimes cannot keep images on an overlay, which the root of this host is. The overlays of podman need devices that a
  // container may not make.
  await host.sh(
    'for each in containerd containers; do mkdir -p /var/lib/$each; mount -t tmpfs tmpfs /var/lib/$each; done',
  )
  await host.write(
    '/etc/containers/storage.conf',
    '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n',
  )
  const show = async () =>
    JSON.parse(await host.output(['edgehostctl', 'api', 'get', '/v1/edge-mgmt/content/registry'])) as Awaited<
      ReturnType<RegistryHost['show']>
    >
  const configure = async (yaml: string) => {
    const reserve = 'reserve: {percent: 0, leastBytes: 1000000}'
    await host.configure('content', `content:\n  ${reserve}\n  registry: {${yaml}}\n`)
    await eventually(async () => expect((await show()).isListening).toBe(true))
  }
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
  await configure('')
  const { token } = await host.openSession('chief', right)
  const upload = async (folder: string) => {
    await output('tar', ['-C', folder, '-cf', `${folder}.tar`, 'index.json', 'oci-layout', 'blobs'])
    const reply = await host.http('POST', uploadPath, { token, form: [`uploadFile=@${folder}.tar`] })
    expect(reply, reply.text).toMatchObject({ status: 201 })
    return reply.json.uid as string
  }
  const layout = join(host.folder, 'layout')
  const images = writePlantImages(layout)
  const uid = await upload(layout)
  const password = (await host.read('/var/lib/edgehostd/registry-password')).trim()
  return {
    ...{ host, images, layout, uid, token, password, upload, configure, show },
    ask: (path, ...args) =>
      askInside(host, `http://${registryAddress}${path}`, ['--user', `edgehostd:${password}`, ...args]),
  }
}
