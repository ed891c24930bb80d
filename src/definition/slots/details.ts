import { isMask, masked } from '../../base/mask.ts'
import type {
  Definition,
  Pack as DefinitionPack,
  Preset,
  Profile,
  Variable as DefinitionVariable,
} from '../definition.ts'
import type { ClusterProfileDetail, Pack, Variable } from '../schemas.ts'
import type { ImageFinder } from '../rules/images.ts'
import { defaultOf } from '../rules/variables.ts'
import { folderKey, foldersByKey } from '../rules/sources.ts'
import { createHide } from './secrets.ts'

// A logo has a few KiB. It becomes part of the JSON, once for each pack.
const sizeLimit = 262_144

/** First bytes of a file, as Latin-1; a dot matches any byte. */
const signatures: readonly (readonly [type: string, start: RegExp])[] = [
  // PNG, 5.2; JFIF and Exif alike; GIF89a, 17; RFC 9649, 2.4.
  ['image/png', /^\x89PNG\r\n.\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
]

/**
 * The logo of a pack as a data URL (RFC 2397), ready for an image element. The content decides the type, not the file
 * name: PNG, JPEG, GIF, WebP, or SVG without active content.
 * @returns empty for any other type, and above 262,144 bytes
 */
export function logoText(content: Uint8Array): string {
  if (content.length > sizeLimit) return ''
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length)
  const start = bytes.toString('latin1', 0, 16)
  const type = signatures.find(([, signature]) => signature.test(start))?.[0]
  if (type !== undefined) return dataUrl(type, bytes)
  return isHarmlessSvg(bytes) ? dataUrl('image/svg+xml', bytes) : ''
}

const dataUrl = (type: string, bytes: Buffer) => `data:${type};base64,${bytes.toString('base64')}`

// XML declaration, comments and a document type without declarations of its own (XML 1.0, 2.8), then the root.
const svgStart =
  /^\s*(?:<\?xml\s(?<declaration>[^?<>]*)\?>\s*)?(?:<!--(?:(?!-->)[^])*-->\s*|<!DOCTYPE\s[^[\]<>]*>\s*)*<svg[\s/>]/

// Content that is executed when an SVG is opened directly or embedded in a page, whatever its namespace prefixes are.
const running = [/<(?:[^\s<>/:]+:)?script/i, /[\s"'/]on[a-z]+\s*=/i, /<!ENTITY/i, /<\?(?!xml\s)/i]
// The same in URLs, in which browsers skip white space. Elements of HTML are as dangerous as scripts.
const runningAddress = [
  /javascript:/i,
  /(?<![a-z])data:(?!image\/(?:png|jpeg|gif|webp)[;,])/i,
  /http:\/\/www\.w3\.org\/1999\/xhtml/i,
]

function isHarmlessSvg(bytes: Buffer): boolean {
  const written = readUtf8(bytes)
  const start = written === undefined ? null : svgStart.exec(written)
  if (written === undefined || start === null) return false
  // A browser that reads it in another encoding sees another text than the one checked here.
  const encoding = /\bencoding\s*=\s*["']([^"']*)/i.exec(start.groups?.declaration ?? '')?.[1] ?? 'utf-8'
  if (encoding.toLowerCase() !== 'utf-8') return false
  const text = written.replace(/&#(?:x([0-9a-f]+)|([0-9]+));/gi, (_, hex?: string, decimal?: string) =>
    characterOf(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)),
  )
  const squeezed = text.replace(/[\s\p{Cc}]+/gu, '')
  return !running.some((shape) => shape.test(text)) && !runningAddress.some((shape) => shape.test(squeezed))
}

const characterOf = (code: number) => (code <= 0x10ffff ? String.fromCodePoint(code) : '')

function readUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/**
 * Details of a definition for the API. Defaults and options of sensitive variables are masked, also where they occur in
 * values and images of packs.
 * @param of finds the images of a pack, and the logo of its folder as a data URL, empty if it has none
 */
export function detailsOf(
  { profiles, packs }: Definition,
  of: {
    readonly images: ImageFinder['imagesOf']
    readonly logo: (pack: DefinitionPack) => string
  },
): ClusterProfileDetail[] {
  const folders = foldersByKey(packs)
  const hide = createHide(profiles)

  const packDetails = (profile: Profile, index: number): Pack[] => {
    const pack = profile.packs[index]
    if (pack === undefined) return []
    const { name, displayName, tag, layer, values } = pack
    const folder = folders.get(folderKey(name, tag))
    const { images, guessed } = of.images(profile, index, folder)
    return [
      {
        name,
        ...(displayName === '' ? {} : { displayName: hide(displayName) }),
        version: tag,
        layer,
        values: hide(values.trim() === '' ? (folder?.values ?? '') : values),
        logo: folder === undefined ? '' : of.logo(folder),
        ...(folder?.dependencies.length ? { dependencies: [...folder.dependencies] } : {}),
        ...(folder?.presets.length
          ? { presets: folder.presets.map((preset) => showPreset(preset, hide)) }
          : {}),
        images: images.map(hide),
        guessedImages: guessed.map(({ image, isTagKnown }) => ({ image: hide(image), isTagKnown })),
      },
    ]
  }

  return profiles.map((profile) => ({
    profileUid: profile.uid,
    profileName: profile.name,
    profileVersion: profile.version,
    profileType: profile.type,
    profileDescription: profile.description,
    profileTags: profile.tags.join(','),
    packs: profile.packs.flatMap((_, index) => packDetails(profile, index)),
    variables: profile.variables.map((variable) => ({ ...variableDetails(variable), ...valueOf(variable) })),
  }))
}

const showPreset = ({ name, displayName, group, remove, add }: Preset, hide: (text: string) => string) => ({
  name,
  displayName,
  group,
  remove: [...remove],
  add: hide(add),
})

type Option = NonNullable<DefinitionVariable['options']>[number]

/** A variable as replies show it: the default and the options of a sensitive one are masked. */
export function variableDetails({ options = [], ...variable }: DefinitionVariable): Variable {
  const isSensitive = variable.isSensitive === true
  const isUnset = isSensitive && isMask(variable.defaultValue ?? '')
  const shown = options.map((option) => optionDetails(option, isSensitive))
  return {
    ...variable,
    ...(isSensitive && variable.defaultValue ? { defaultValue: isUnset ? '' : masked } : {}),
    ...(shown.length === 0 ? {} : { options: shown }),
  }
}

function valueOf(variable: DefinitionVariable): Pick<Variable, 'value'> {
  const value = defaultOf(variable)
  return value === undefined ? {} : { value: variable.isSensitive === true ? masked : value }
}

/** The fields that are set; exports write null for the others. A label or a description often repeats the value. */
function optionDetails({ value, label, description, default: isDefault }: Option, isSensitive: boolean) {
  const hide = (text: string) => (isSensitive && value !== '' && text.includes(value) ? masked : text)
  return {
    value: hide(value),
    ...(label ? { label: hide(label) } : {}),
    ...(description ? { description: hide(description) } : {}),
    ...(isDefault ? { default: true } : {}),
  }
}
