import { isUtf8 } from 'node:buffer'
import { join } from 'node:path'
import { withDefaults } from '../../archive/limits.ts'
import { printable } from '../../base/printable.ts'
import { createDiskRoom } from '../../upload/disk-room.ts'
import { replaceFile } from '../../system/files.ts'
import type { Problem } from '../definition.ts'
import { checkShape } from '../format/check-shape.ts'
import { definitionFile } from '../format/definition-file.ts'
import { DefinitionFile, formatVersion } from '../format/format.ts'
import {
  parseExport,
  displayNameKey,
  type ExportedProfile,
  type ReadProfile,
  resolvePacks,
} from '../read/read-profile.ts'
import { writeYaml } from '../../base/write-yaml.ts'
import { checkComposition } from '../rules/composition.ts'
import { variableDetails } from '../slots/details.ts'
import { createHide } from '../slots/secrets.ts'
import { importErrors } from '../codes.ts'
import {
  endLine,
  exportFiles,
  profilePacks,
  type ExaminedExport,
  type ExaminedReference,
  type ExportOrder,
} from './protocol.ts'
import { refuseErrors } from './examine.ts'

const place = 'profile'
// Each of them is a row of a reply, and of the platform's database.
const mostPacks = 1_000
// Metadata and variables are held in memory by the platform, and are a part of what this program answers.
const mostBesideBytes = 1_048_576
// Set by the platform anew.
const ownFields = new Set(['uid', 'creationTimestamp', 'lastModifiedTimestamp'])

/**
 * Reads an exported profile, checks its form as `definition build` does, and writes the parts that a platform returns, synced to the disk:
 * no secret of a variable is in these files.
 * @param lines its bytes, as `ExportOrder` says
 * @throws AppError why it is refused; the system's errors as they are
 */
export async function examineExport(
  { profile: { folder, limits: given, reserveBytes, isNew } }: ExportOrder,
  lines: AsyncIterable<string>,
): Promise<ExaminedExport> {
  const bytes = await readBytes(lines)
  if (!isUtf8(bytes))
    refuseOne(
      'NotUtf8',
      'is not UTF-8, so it is not a profile as profile export writes it, in JSON or YAML; an archive of a definition is for a host',
    )
  const { profile, exported, problems } = parseExport({ place, content: new TextDecoder().decode(bytes) })
  refuseErrors(importErrors.ProfileInvalid, [
    ...(isNew ? problems.map(refusedSpelling) : problems),
    ...(profile ? checkProfile(profile) : []),
  ])
  if (!profile || !exported) throw new Error('a profile without a problem was not read')

  const { textBytes } = withDefaults(given)
  const parts = partsOf(exported)
  requireFits(exported, textBytes)
  const packs = packLines(profile, exported)
  const room = createDiskRoom({ folder, reserveBytes })
  for (const [name, text] of [
    [exportFiles.json, parts.json],
    [exportFiles.yaml, parts.yaml],
    [profilePacks, packs.text],
  ] as const) {
    const content = Buffer.from(text)
    await room.take(content.length)
    await replaceFile(join(folder, name), content, 0o600)
  }
  return {
    name: profile.name,
    version: profile.version,
    type: profile.type,
    cloudType: exported.spec.template.cloudType ?? '',
    description: profile.description,
    metadata: parts.metadata,
    ...(parts.variables === undefined ? {} : { variables: parts.variables }),
    shownVariables: profile.variables.map(variableDetails),
    packs: packs.references,
    hasUserMacros: profile.packs.some(({ values, manifests }) =>
      [values, ...manifests.map(({ content }) => content)].some((text) => text.includes('.spectro.macro.')),
    ),
  }
}

/** A reply has no place for a warning, and a secret with a misspelt `isSensitive` would be stored as plain text. */
const refusedSpelling = (problem: Problem): Problem =>
  problem.code === 'FieldMisspelt' ? { ...problem, severity: 'error' } : problem

async function readBytes(lines: AsyncIterable<string>): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const line of lines) {
    if (line === endLine) return Buffer.concat(pieces)
    pieces.push(Buffer.from(line, 'base64'))
  }
  throw new Error('the profile ended before its last line')
}

/** The checks of `definition build` for a single profile. */
function checkProfile(profile: ReadProfile): Problem[] {
  const { uid, name, version, description } = profile
  const head = {
    formatVersion,
    name,
    version,
    description,
    sha256: '',
    profiles: [{ uid, name, version }],
  }
  // Its version has a stricter rule.
  const problems = checkShape(place, head, DefinitionFile)
    .filter((each) => each.place !== `${place}#version`)
    .map((each) => ({ ...each, place: each.place.replace(/#(name|description)/, '#metadata.$1') }))
  const definition = {
    formatVersion,
    name,
    version,
    description,
    packs: [],
    profiles: resolvePacks([profile], []),
  }
  checkComposition(definition, (code, at, message) => {
    // The definition has the version of its profile.
    if (code === 'VersionInvalid' && !at.startsWith(definitionFile))
      problems.push({ code, severity: 'error', place: at, message })
  })
  if (profile.packs.length > mostPacks)
    problems.push(
      errorAt('spec.template.packs', `has ${profile.packs.length} packs; ${mostPacks} are allowed`),
    )
  return problems
}

/** The texts of a profile that are stored apart. */
function partsOf({ metadata, spec, ...rest }: ExportedProfile) {
  const { variables, ...ofSpec } = spec
  const kept = Object.fromEntries(Object.entries(metadata).filter(([name]) => !ownFields.has(name)))
  try {
    const beside = {
      metadata: JSON.stringify(kept),
      variables: (variables ?? undefined) && JSON.stringify(variables),
    }
    const metadataBytes = Buffer.byteLength(beside.metadata)
    const variablesBytes = Buffer.byteLength(beside.variables ?? '')
    if (metadataBytes + variablesBytes > mostBesideBytes)
      refuseErrors(importErrors.ProfileInvalid, [
        errorAt(
          metadataBytes > variablesBytes ? 'metadata' : 'spec.variables',
          `is too long: metadata has ${metadataBytes} bytes as JSON and spec.variables ${variablesBytes}; ${mostBesideBytes} are allowed for both`,
        ),
      ])
    // The end of `spec` is left open for its variables.
    const others = JSON.stringify(rest).slice(1, -1)
    const json = `${others === '' ? '' : `${others},`}"spec":${JSON.stringify(ofSpec).slice(0, -1)}`
    const yaml = writeYaml({ ...rest, spec: ofSpec })
    return { ...beside, json, yaml }
  } catch (error) {
    if (error instanceof RangeError) refuseOne('JsonInvalid', 'nests too deep')
    throw error
  }
}

/** In a definition the profile is one file, JSON, with a uid. */
function requireFits(exported: ExportedProfile, textBytes: number): void {
  const { packs } = exported.spec.template
  const member = { ...exported, metadata: { ...exported.metadata, uid: '0'.repeat(36) } }
  const sizeBytes = Buffer.byteLength(`${JSON.stringify(member, null, 2)}\n`)
  if (sizeBytes <= textBytes) return
  if (packs.length === 0)
    refuseOne('MemberTooLarge', `has ${sizeBytes} bytes as JSON; ${textBytes} are allowed`)
  const sizes = packs.map((pack) => Buffer.byteLength(JSON.stringify(pack)))
  const largest = sizes.indexOf(Math.max(0, ...sizes))
  const message = `has ${sizes[largest] ?? 0} bytes with its values and manifests, the most of all packs; a profile may have ${textBytes} bytes as JSON, and this one has ${sizeBytes}`
  refuseErrors(importErrors.ProfileInvalid, [
    {
      ...errorAt(
        `spec.template.packs[${largest}]`,
        `pack ${printable(packs[largest]?.name ?? '')} ${message}`,
      ),
      code: 'MemberTooLarge',
    },
  ])
}

function packLines(profile: ReadProfile, { spec: { template } }: ExportedProfile) {
  const hide = createHide([profile])
  const lines: string[] = []
  const references = profile.packs.map((pack, index): ExaminedReference => {
    const { registryUid } = template.packs[index] ?? {}
    const { name, tag, version, layer, type } = pack
    const shown = JSON.stringify({
      name,
      tag,
      layer: layer || 'addon',
      type: type || 'spectro',
      ...(version === '' ? {} : { version }),
      ...(registryUid ? { registryUid } : {}),
      ...(pack.displayName === '' ? {} : { annotations: { [displayNameKey]: hide(pack.displayName) } }),
      manifests: pack.manifests.map((manifest) => ({ kind: 'manifest', name: hide(manifest.name) })),
    })
    const values = JSON.stringify(hide(pack.values))
    lines.push(shown, values)
    return {
      name,
      tag,
      version,
      layer,
      type,
      lineBytes: [Buffer.byteLength(shown), Buffer.byteLength(values)],
    }
  })
  return { references, text: lines.map((line) => `${line}\n`).join('') }
}

const errorAt = (field: string, message: string): Problem => ({
  code: 'FieldInvalid',
  severity: 'error',
  place: `${place}#${field}`,
  message,
})

const refuseOne = (code: string, message: string) =>
  refuseErrors(importErrors.ProfileInvalid, [{ code, severity: 'error', place, message }])
