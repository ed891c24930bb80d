import type { Platform } from '../../content/format/descriptor.ts'
import type { ImageDescription } from './seen-image.ts'

/** Most bytes of an index, manifest or configuration that is read; real ones have some KB. */
export const documentBytes = 1_048_576

/** Reads a document of an image. @returns undefined if it is not here */
export type ReadDocument = (digest: string) => Promise<Buffer | undefined>

/**
 * Describes an image by its own documents: how large it is, and for which platforms it is here. A document that is no index or manifest
 * of today counts as one that is not here.
 * Source: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-index.md and manifest.md
 * @param digest of its index or manifest
 */
export async function describeImage(
  digest: string,
  read: ReadDocument,
): Promise<ImageDescription | undefined> {
  const sizes = new Map<string, number>()
  const platforms = new Map<string, Platform>()
  const imageIds = new Set<string>()

  async function addManifest(manifest: Manifest, platform: Platform | undefined): Promise<void> {
    for (const { digest: named, size } of [manifest.config, ...manifest.layers]) sizes.set(named, size)
    imageIds.add(manifest.config.digest)
    const found = platform ?? platformOf(parse(await read(manifest.config.digest)))
    if (found) platforms.set(platformKey(found), found)
  }

  const bytes = await read(digest)
  const document = documentOf(parse(bytes))
  if (!bytes || !document) return undefined
  sizes.set(digest, bytes.length)
  if ('config' in document) await addManifest(document, undefined)
  else
    for (const child of document.children) {
      const childBytes = await read(child.digest)
      const manifest = documentOf(parse(childBytes))
      if (!childBytes || !manifest || !('config' in manifest)) continue
      sizes.set(child.digest, childBytes.length)
      await addManifest(manifest, child.platform)
    }
  const [imageId] = imageIds
  return {
    sizeBytes: [...sizes.values()].reduce((sum, size) => sum + size, 0),
    platforms: [...platforms.values()],
    ...(imageId !== undefined && imageIds.size === 1 ? { imageId } : {}),
  }
}

interface Descriptor {
  readonly digest: string
  readonly size: number
}

interface Manifest {
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
}

interface Index {
  readonly children: readonly { readonly digest: string; readonly platform: Platform | undefined }[]
}

type Json = Readonly<Record<string, unknown>>

const mostChildren = 1_000

function documentOf(json: Json | undefined): Manifest | Index | undefined {
  if (!json) return undefined
  if (Array.isArray(json.manifests))
    return {
      children: json.manifests.slice(0, mostChildren).flatMap((child: unknown) => {
        const found = descriptorOf(child)
        const platform = (child as { platform?: unknown } | null)?.platform
        // What BuildKit states about the origin of an image is for the platform unknown/unknown.
        const isStatement = objectOf(platform)?.architecture === 'unknown'
        return found && !isStatement
          ? [{ digest: found.digest, platform: platformOf(objectOf(platform)) }]
          : []
      }),
    }
  const config = descriptorOf(json.config)
  if (!config || !Array.isArray(json.layers)) return undefined
  return { config, layers: json.layers.flatMap((layer) => descriptorOf(layer) ?? []) }
}

function descriptorOf(value: unknown): Descriptor | undefined {
  const { digest, size } = objectOf(value) ?? {}
  return typeof digest === 'string' && Number.isSafeInteger(size) && Number(size) >= 0
    ? { digest, size: Number(size) }
    : undefined
}

/** The platform that a descriptor or a configuration names. */
export function platformOf(json: Json | undefined): Platform | undefined {
  const { os, architecture, variant } = json ?? {}
  if (typeof os !== 'string' || typeof architecture !== 'string' || os === '' || architecture === '')
    return undefined
  return { os, architecture, ...(typeof variant === 'string' && variant !== '' ? { variant } : {}) }
}

/** Equal for equal platforms. */
export const platformKey = ({ os, architecture, variant = '' }: Platform): string =>
  `${os}/${architecture}/${variant}`

/** The texts of a list; none of what is not one. */
export const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : []

const objectOf = (value: unknown): Json | undefined =>
  typeof value === 'object' && value !== null ? (value as Json) : undefined

function parse(bytes: Buffer | undefined): Json | undefined {
  if (!bytes || bytes.length > documentBytes) return undefined
  try {
    return objectOf(JSON.parse(bytes.toString()))
  } catch {
    return undefined
  }
}
