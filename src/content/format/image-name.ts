import { annotations as keys } from './media-types.ts'
import { showText } from './refusal.ts'

/** The name of an image, normalised. */
interface ImageName {
  /** Host and path: `docker.io/library/busybox`. */
  readonly name: string
  /** Missing if the name has only a digest. */
  readonly tag?: string
  readonly digest?: string
}

const defaultHost = 'docker.io'
// Former name of the same registry in Docker's command line.
const legacyHosts: ReadonlySet<string> = new Set(['index.docker.io'])

const hostName =
  /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/i
const path = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/
const tagForm = /^\w[\w.-]{0,127}$/
const digestForm = /^sha256:[0-9a-f]{64}$/
const hexadecimal = /^[0-9a-f]{64}$/
// The longest repository and host that registries accept.
const longest = 255

/**
 * Parses and completes the name of an image as Docker and containerd do: `busybox` is `docker.io/library/busybox:latest`.
 * The first part is a host if it contains a dot or a colon, is `localhost` or has capital letters. Hosts are written
 * small, since DNS ignores case. Source: the grammar and the normalisation of github.com/distribution/reference.
 * @returns or why the text is not such a name, the rest of a sentence
 */
export function parseImageName(text: string): ImageName | { readonly problem: string } {
  if (text === '') return { problem: 'is empty' }
  if (text.length > 2 * longest + 256) return { problem: `has ${text.length} characters` }
  const at = text.indexOf('@')
  const digest = at < 0 ? undefined : text.slice(at + 1)
  if (digest !== undefined && !digestForm.test(digest))
    return { problem: 'has a digest that is not sha256: and 64 hexadecimal digits in lower case' }
  const named = at < 0 ? text : text.slice(0, at)
  // A colon before a slash belongs to a port.
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1)
  const tag = colon < 0 ? undefined : named.slice(colon + 1)
  const repository = colon < 0 ? named : named.slice(0, colon)
  if (hexadecimal.test(repository) || (repository === 'sha256' && tag !== undefined && hexadecimal.test(tag)))
    return { problem: 'is a digest, not a name' }
  if (tag !== undefined && !tagForm.test(tag))
    return { problem: 'has a tag that is not 1 to 128 letters, digits, _, . and -' }
  const split = splitHost(repository)
  if ('problem' in split) return split
  return {
    name: `${split.host}/${split.path}`,
    ...(tag !== undefined ? { tag } : digest === undefined ? { tag: 'latest' } : {}),
    ...(digest === undefined ? {} : { digest }),
  }
}

function splitHost(repository: string): { host: string; path: string } | { problem: string } {
  const slash = repository.indexOf('/')
  const first = repository.slice(0, Math.max(slash, 0))
  const isHost = slash > 0 && (/[.:A-Z]/.test(first) || first === 'localhost')
  const found = isHost ? first.toLowerCase() : defaultHost
  const host = legacyHosts.has(found) ? defaultHost : found
  const rest = isHost ? repository.slice(slash + 1) : repository
  if (!hostName.test(host) || host.length > longest)
    return { problem: 'has a host that is not a name of DNS' }
  const full = host === defaultHost && !rest.includes('/') ? `library/${rest}` : rest
  if (rest === '' || full.length > longest || !path.test(full))
    return {
      problem: /[A-Z]/.test(full)
        ? 'has capital letters in its path; registries accept small ones'
        : 'has a path that is not small letters and digits, separated by /, ., _ and -',
    }
  return { host, path: full }
}

/** A name as text: `docker.io/library/busybox:1.36`. */
export const formatImageName = ({ name, tag, digest }: ImageName): string =>
  `${name}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`

/** Name of an entry of index.json; neither field if it is kept by its digest only. */
export interface EntryName {
  /** Host and path, normalised. */
  readonly name?: string
  readonly tag?: string
  /** Why a name that a tool wrote is not used: a sentence for operators. */
  readonly nameProblem?: string
}

// Names that ctr, and Docker with the image store of containerd, give an image without a name.
const madeUpName = /^(?:import-\d{4}-\d{2}-\d{2}[@:]|moby-dangling@)/
const maxCharacters = 1_024

/**
 * The name of an entry, from the annotations of its descriptor.
 * `io.containerd.image.name` is always a whole name. `org.opencontainers.image.ref.name` and `…base.name` count if they
 * cannot be a tag, that is, if they contain a slash or a colon: ctr, Docker, BuildKit, oras and `skopeo copy … oci:DIR:TAG`
 * write only the tag, podman, buildah and `skopeo copy … oci:DIR:NAME:TAG` the whole name. A tag alone names no image.
 */
export function nameEntry(annotations: ReadonlyMap<string, string>, digest: string): EntryName {
  const candidates = [
    { key: keys.imageName, text: annotations.get(keys.imageName) },
    ...[keys.refName, keys.baseName].map((key) => ({ key, text: onlyWhole(annotations.get(key)) })),
  ]
  let nameProblem: string | undefined
  for (const { key, text } of candidates) {
    if (text === undefined || text === '' || madeUpName.test(text)) continue
    const found = text.length > maxCharacters ? { problem: 'is too long' } : parseImageName(text)
    if (!('problem' in found)) {
      if (found.digest === undefined || found.digest === digest)
        return { name: found.name, ...(found.tag === undefined ? {} : { tag: found.tag }) }
      nameProblem ??= `${key} ${showText(text)} names another digest`
    } else if (found.problem !== 'is a digest, not a name')
      nameProblem ??= `${key} ${showText(text)} ${found.problem}`
  }
  return nameProblem === undefined ? {} : { nameProblem }
}

function onlyWhole(text: string | undefined): string | undefined {
  const named = text?.split('@')[0]
  return named !== undefined && /[/:]/.test(named) ? text : undefined
}
