// Imported before all else: what is imported after it takes the names of the platform.
Object.assign(globalThis, { __PROGRAM__: 'edgeplatformd' })
