import { annotations as keys } from './media-types.ts'
import { parseImageName } from './image-name.ts'
import { showText } from './refusal.ts'

/** How an entry of index.json is called; neither field if it is kept by its digest only. */
export interface EntryName {
  /** Host and path, normalised. */
  readonly name?: string
  readonly tag?: string
  /** Why a name that a tool wrote is not used: a sentence for operators. */
  readonly nameProblem?: string
}

// What ctr, and Docker with the image store of containerd, call an image that was given no name.
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
