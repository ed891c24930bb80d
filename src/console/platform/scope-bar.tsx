import { hrefOf, placeProject } from '../shared/shell.tsx'
import { text } from './platform.ts'
import { projects, roleIn } from './session.ts'

/** Where the pages look: the tenant itself, or one of its projects. The choice is a part of the address. */
export function ScopeBar({ path }: { path: string }) {
  const t = text.value.scope
  const now = placeProject.value ?? ''
  const known = projects.value.map(({ metadata: { uid, name } }) => [uid, name] as const)
  // One that was deleted, or in which the user has no role, is shown by its uid.
  const unknown = now !== '' && !known.some(([uid]) => uid === now) ? [[now, now] as const] : []
  if (known.length + unknown.length === 0) return null
  return (
    <label class="scope">
      <span>{t.project}</span>
      <select
        value={now}
        onChange={(event) => {
          location.hash = hrefOf(path, event.currentTarget.value)
        }}
      >
        {(roleIn(undefined) !== undefined || now === '') && <option value="">{t.tenant}</option>}
        {[...known, ...unknown].map(([uid, name]) => (
          <option key={uid} value={uid}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
