import { parseImageName } from '../format/image-name.ts'

/** Under which names of the content a repository of a request is looked for, the first one first. */
export interface Repository {
  /** Whole names of images: `docker.io/library/busybox`. */
  readonly names: readonly string[]
  /** The name of an image without its host, on any host. */
  readonly path?: string
  /** Title of a chart or another artifact that has no name of an image. */
  readonly title?: string
}

// A host and a path; image-name.ts bounds each.
const longestName = 512
const hostForm = /^[^/]*[a-z0-9\]][.:][^/]*\/|^localhost\//i
// The name of a repository in a path has no colon, so clients write a port behind _, as they are configured.
const portForm = /^([^/]+)_(\d{1,5})(?=\/)/

/**
 * What a client means by the name in a path. Clients ask for one image in three ways:
 * - containerd sends the host of the image apart: `library/busybox?ns=docker.io`. Only an image of that host is meant.
 * - podman and skopeo put it in front of the path, as they are configured: `docker.io/library/busybox`, `registry.example_5000/app`.
 * - Without a host (`library/busybox`) the image of docker.io is meant, or else one of any host; charts have no host either.
 * @returns undefined for what is not a name
 */
export function parseRepository(name: string, ns: string | undefined): Repository | undefined {
  if (name.length > longestName) return undefined
  if (ns !== undefined && ns !== '') {
    const named = !ns.includes('/') && hostForm.test(`${ns}/`) ? nameOf(`${ns}/${name}`) : undefined
    return named === undefined ? undefined : { names: [named] }
  }
  const onHost = hostForm.test(name) ? nameOf(name) : undefined
  const onDefaultHost = nameOf(`docker.io/${name}`)
  const onPort = portForm.test(name) ? nameOf(name.replace(portForm, '$1:$2')) : undefined
  const names = [onPort, onHost, onDefaultHost].filter((each) => each !== undefined)
  if (names.length === 0) return undefined
  return onDefaultHost === undefined ? { names } : { names, path: name, title: name }
}

/** The whole name of a repository; undefined for text that is not one, or that has a tag or a digest. */
function nameOf(text: string): string | undefined {
  // A colon after the last slash would begin a tag.
  if (text.includes('@') || text.lastIndexOf(':') > text.lastIndexOf('/')) return undefined
  const parsed = parseImageName(text)
  return 'problem' in parsed ? undefined : parsed.name
}
